import { afterAll, beforeAll, expect, it } from 'vitest';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, visit } from '#test/support/platform/user.ts';

let platform: RunningPlatform;
beforeAll(async () => {
  platform = await startPlatform({ env: { PAAS_RELEASE_COMMAND_SECONDS: '2', PAAS_CANARY_STEP_SECONDS: '0' } });
});
afterAll(() => removePlatform(platform));

it('a release command that ignores its end is killed, its push fails with the cause, and others deploy meanwhile', async () => {
  const [greedy, honest] = [await createUser(platform), await createUser(platform, 'grace@example.com')];
  const stubborn = await greedy.createApp('stubborn');
  const release = `trap "" TERM INT HUP; while :; do sleep 1; done`;
  const Procfile = `web: node server.js\nrelease: ${release}\n`;
  const copy = await greedy.createWorkingCopy(stubborn.push_url, { ...nodeApp('stubborn'), Procfile });
  const pushed = copy.push();
  const fine = await honest.createApp('fine');
  const other = await honest.createWorkingCopy(fine.push_url, nodeApp('fine'));
  expect((await other.push()).code).toBe(0);
  expect((await visit(platform, 'fine')).body).toContain('fine');
  const { code, output } = await pushed;
  expect(code).toBe(1);
  expect(output).toContain('The release command took longer than 2 seconds and was stopped');
  expect(output).toContain('release command failed');
}, 180_000);
