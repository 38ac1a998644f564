import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { createApps } from '#shared/core/apps/apps-service.ts';
import { createHouse, type House } from '#test/support/house.ts';

let house: House;
let owner: Principal;
beforeAll(async () => {
  house = await createHouse();
  owner = await house.signUp();
});
afterAll(() => house.close());

it('takes another generated name when the first is taken, and says so only of a name that was asked for', async () => {
  await house.services.apps.createApp(owner, { name: 'quiet-harbor-10000' });
  const names = ['quiet-harbor-10000', 'quiet-harbor-10000', 'bold-reef-10001'];
  const apps = createApps(house.context, () => names.shift() ?? 'silver-moon-10002');
  expect((await apps.createApp(owner, {})).name).toBe('bold-reef-10001');
  await expect(apps.createApp(owner, { name: 'quiet-harbor-10000' })).rejects.toMatchObject({
    code: 'conflict',
    message: 'The name quiet-harbor-10000 is taken. Choose another.',
  });
});
