import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { getRequestListener } from '@hono/node-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createApi } from '#api/create-api.ts';
import { createPerson, type Person } from '#cli/testing/person.ts';
import { runInProcess } from '#cli/testing/run-in-process.ts';
import { createServices } from '#deploy/control-plane.ts';
import { createTestApi, type TestApi } from '#test/support/api/test-api.ts';

const run = promisify(execFile);
let test: TestApi;
let server: Server;
let ada: Person;
let eve: Person;
beforeAll(async () => {
  test = await createTestApi();
  server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const services = createServices({ ...test.context, settings: { ...test.context.settings, baseUrl } });
  const listener = getRequestListener(createApi({ ...test.apiOptions, services }).fetch);
  server.on('request', (request, response) => void listener(request, response));
  [ada, eve] = await Promise.all([createPerson({ PAAS_API_URL: baseUrl }), createPerson({ PAAS_API_URL: baseUrl })]);
  for (const person of [ada, eve]) {
    const signUp = ['signup', '-e', `${crypto.randomUUID()}@example.com`, '--password-stdin'];
    expect((await paas(person, signUp, 'correct horse battery')).code).toBe(0);
  }
});
afterAll(async () => {
  server?.closeAllConnections();
  server?.close();
  await ada?.remove();
  await eve?.remove();
  await test?.close();
});

const paas = ({ home, env }: Person, args: readonly string[], input = '') => runInProcess(args, { cwd: home, env, input });

it('a key that somebody else registered first is moved to who has its private half, and stays with them', async () => {
  const path = join(ada.home, 'key');
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'ada', '-f', path]);
  await run('cp', [`${path}.pub`, join(eve.home, 'stolen.pub')]);
  const stolen = join(eve.home, 'stolen.pub');
  expect((await paas(eve, ['keys:add', stolen])).code).toBe(0);
  const added = await paas(ada, ['keys:add', `${path}.pub`]);
  expect([added.code, added.stderr]).toEqual([0, expect.stringContaining('Moving the key from another account')]);
  expect((await paas(ada, ['keys'])).stdout).toContain(added.stdout.trim());
  expect((await paas(eve, ['keys'])).stdout).toBe('');
  const again = await paas(eve, ['keys:add', stolen]);
  expect(again.code).not.toBe(0);
  expect(again.stderr).toContain('This key is registered with another account.');
  expect((await paas(ada, ['keys'])).stdout).toContain(added.stdout.trim());
});
