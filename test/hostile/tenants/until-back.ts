import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningPlatform } from '#test/support/platform/running-platform.ts';
import { visit } from '#test/support/platform/user.ts';

/** Waits until the attacker's app serves: what it attempted before may have ended it. @throws Error after a minute */
export async function untilBack({ platform, app }: { platform: RunningPlatform; app: { name: string } }): Promise<void> {
  for (const until = Date.now() + 60_000; Date.now() < until; await sleep(100))
    if ((await visit(platform, app.name).catch(() => undefined))?.body === 'here') return;
  throw new Error('The app did not come back.');
}
