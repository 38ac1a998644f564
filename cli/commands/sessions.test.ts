import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { type CommandResult, createPerson, type Person } from '#cli/testing/person.ts';
import { runInProcess } from '#cli/testing/run-in-process.ts';
import { createTestApi, type TestApi } from '#test/support/api/test-api.ts';

let test: TestApi;
let server: Server;
let host: string;
beforeAll(async () => {
  test = await createTestApi();
  server = createServer(getRequestListener(test.api.fetch));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  host = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server?.closeAllConnections();
  server?.close();
  await test?.close();
});

const password = 'correct horse battery';
let email: string;
let laptop: Person;
let desktop: Person;
beforeEach(async () => {
  test.clock.advance(60_000);
  email = `${crypto.randomUUID()}@example.com`;
  [laptop, desktop] = await Promise.all([createPerson({ PAAS_API_URL: host }), createPerson({ PAAS_API_URL: host })]);
  await ok(laptop, ['signup', '-e', email, '--password-stdin'], password);
  await ok(desktop, ['login', '-e', email, '--password-stdin'], password);
});
afterEach(async () => {
  await laptop.remove();
  await desktop.remove();
});

const paas = ({ home, env }: Person, args: readonly string[], input = ''): Promise<CommandResult> =>
  runInProcess(args, { cwd: home, env, input });
async function ok(person: Person, args: readonly string[], input = ''): Promise<CommandResult> {
  const result = await paas(person, args, input);
  expect([args, result.stderr, result.code]).toEqual([args, result.stderr, 0]);
  return result;
}

interface Listed {
  id: string;
  current: boolean;
  client: string;
}
const listSessions = async (person: Person): Promise<Listed[]> =>
  JSON.parse((await ok(person, ['sessions', '--json'])).stdout) as Listed[];

it('lists where somebody is logged in, and ends a session by its id', async () => {
  expect((await ok(laptop, ['sessions'])).stdout).toMatch(/paas-cli\/.*this session/);
  const other = (await listSessions(laptop)).find(({ current }) => !current);
  expect(other?.client).toMatch(/^paas-cli\//);
  await ok(laptop, ['sessions:end', other?.id ?? '']);
  expect((await paas(desktop, ['whoami'])).code).toBe(3);
  expect(await listSessions(laptop)).toHaveLength(1);
  expect((await paas(laptop, ['sessions:end', other?.id ?? ''])).stderr).toContain('List them with `paas sessions`.');
});

it('logs out everywhere, with SSH keys and API tokens if asked, and here too', async () => {
  await ok(laptop, ['tokens:create', 'ci']);
  const { stderr } = await ok(laptop, ['sessions:end', '--all', '--keys', '--tokens']);
  expect(stderr).toContain('1 API tokens were revoked.');
  for (const person of [laptop, desktop]) expect((await paas(person, ['whoami'])).code).toBe(3);
});

it('keeps the session in which all others are ended', async () => {
  await ok(laptop, ['sessions:end', '--others']);
  expect((await paas(desktop, ['whoami'])).code).toBe(3);
  await ok(laptop, ['whoami']);
});

it('asks which session to end', async () => {
  for (const args of [['sessions:end'], ['sessions:end', '--all', '--others'], ['sessions:end', 'x', '--keys']])
    expect((await paas(laptop, args)).code).toBe(2);
});

it('changes the password, which ends all other sessions', async () => {
  const { stderr } = await ok(laptop, ['account:password', '--password-stdin'], `${password}\nanother password\n`);
  expect(stderr).toContain('All other sessions have ended.');
  expect((await paas(desktop, ['whoami'])).code).toBe(3);
  await ok(laptop, ['whoami']);
  expect((await paas(desktop, ['login', '-e', email, '--password-stdin'], password)).code).toBe(3);
  await ok(desktop, ['login', '-e', email, '--password-stdin'], 'another password');
});

it('explains a wrong password and missing input', async () => {
  const wrong = await paas(laptop, ['account:password', '--password-stdin'], 'wrong password\nanother password\n');
  expect(wrong.stderr).toContain('The current password is wrong.');
  expect((await paas(laptop, ['account:password', '--password-stdin'], `${password}\n`)).code).toBe(2);
});

it('changes the email address', async () => {
  await ok(laptop, ['account:email', `new-${email}`, '--password-stdin'], password);
  expect((await ok(laptop, ['whoami'])).stdout).toBe(`new-${email}\n`);
  await ok(desktop, ['login', '-e', `new-${email}`, '--password-stdin'], password);
});
