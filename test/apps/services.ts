import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ifMissing } from '#shared/files/if-missing.ts';
import type { AppAnswer, User } from '#test/support/platform/user.ts';

interface AddonAnswer {
  readonly addon_type: string;
  readonly status: string;
}

/**
 * Attaches the add-ons that stand for the services of docker-compose.yml, and waits until they are ready.
 * @returns variables under the names that the app reads, where the platform has others
 */
export async function attachServices(user: User, app: AppAnswer, directory: string): Promise<Record<string, string | null>> {
  const compose = (await readFile(join(directory, 'docker-compose.yml'), 'utf8').catch(ifMissing(''))) ?? '';
  const types = [
    ...(/image:\s*["']?\S*postgres/.test(compose) ? ['database'] : []),
    ...(/image:\s*["']?\S*(redis|valkey)/.test(compose) ? ['kvstore'] : []),
  ];
  for (const type of types) {
    const plan = type === 'kvstore' ? { plan: 'free' } : {};
    await user.api('POST', `/v1/apps/${app.id}/addons`, { type, ...plan });
  }
  for (;;) {
    const addons = await user.api<AddonAnswer[]>('GET', `/v1/apps/${app.id}/addons`);
    if (addons.every(({ status }) => status === 'Ready')) break;
    await sleep(200);
  }
  // An app's own variable would hide the add-on's.
  return types.includes('database') ? { DATABASE_URL: null } : {};
}
