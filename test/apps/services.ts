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
 * @returns the app's variables, under the names that the app reads where the platform has others
 */
export async function attachServices(
  user: User,
  app: AppAnswer,
  { directory, envs }: { directory: string; envs: Readonly<Record<string, string>> },
): Promise<Record<string, string>> {
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
  const config = await user.api<Record<string, string>>('GET', `/v1/apps/${app.id}/config`);
  const own = { ...envs };
  // The platform sets it, and refuses another.
  delete own['PORT'];
  // The platform's own would be hidden.
  if (types.includes('database')) delete own['DATABASE_URL'];
  if (types.includes('kvstore') && config['KVSTORE_URL'] !== undefined) own['REDIS_URL'] = config['KVSTORE_URL'];
  return own;
}
