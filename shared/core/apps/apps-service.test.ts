import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { createApps } from '#shared/core/apps/apps-service.ts';
import { type CoreFixture, createCoreFixture } from '#test/support/core/core-fixture.ts';

let core: CoreFixture;
let owner: Principal;
beforeAll(async () => {
  core = await createCoreFixture();
  owner = await core.signUp();
});
afterAll(() => core.close());

it('takes another generated name when the first is taken, and says so only of a name that was asked for', async () => {
  await core.services.apps.createApp(owner, { name: 'quiet-harbor-10000' });
  const names = ['quiet-harbor-10000', 'quiet-harbor-10000', 'bold-reef-10001'];
  const apps = createApps(core.context, () => names.shift() ?? 'silver-moon-10002');
  expect((await apps.createApp(owner, {})).name).toBe('bold-reef-10001');
  await expect(apps.createApp(owner, { name: 'quiet-harbor-10000' })).rejects.toMatchObject({
    code: 'conflict',
    message: 'The name quiet-harbor-10000 is taken. Choose another.',
  });
});
