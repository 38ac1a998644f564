import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User } from '#test/support/platform/user.ts';

let platform: RunningPlatform;
let user: User;
beforeAll(async () => {
  platform = await startPlatform();
  user = await createUser(platform);
});
afterAll(async () => {
  await user?.remove();
  await removePlatform(platform);
});

/** A server that ends by GET /, and answers all else. */
const endsByRoot = (version: string) => ({
  'package.json': JSON.stringify({ name: 'bot', version, scripts: { start: 'node server.js' } }),
  'server.js': `
    require('node:http').createServer((request, response) => {
      if (request.url === '/') process.exit(1);
      response.writeHead(request.url === '/up' ? 200 : 500).end(${JSON.stringify(version)});
    }).listen(process.env.PORT);`,
});

it('an app that ends by GET / is not taken down by the question of the platform, and can be deployed again', async () => {
  const { push_url } = await user.createApp('bot');
  const copy = await user.createWorkingCopy(push_url, endsByRoot('1.0.0'));
  expect((await copy.push()).code).toBe(0);
  await copy.commit(endsByRoot('2.0.0'));
  const second = await copy.push();
  expect([second.code, second.stderr]).toEqual([0, expect.stringContaining('v2 ended when it was asked')]);
  const logs = await user.api<{ message: string }[]>('GET', '/v1/apps/bot/logs?lines=500');
  expect(logs.filter(({ message }) => /exited with code 1/.test(message))).toHaveLength(1);

  await user.api('PATCH', '/v1/apps/bot/settings', { health_path: '/up' });
  const newest = async () => (await user.api<{ version: number; status: string }[]>('GET', '/v1/apps/bot/deploys'))[0];
  await expect.poll(newest, { timeout: 60_000 }).toMatchObject({ version: 3, status: 'live' });
  await copy.commit(endsByRoot('3.0.0'));
  const third = await copy.push();
  expect([third.code, third.stderr]).toEqual([0, expect.stringContaining('Asked it instead: GET /up answers 200')]);
});
