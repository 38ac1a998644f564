import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { AddonSpec } from '#shared/platform/addons.ts';
import { askStore } from '#shared/platform/local/addons/testing/kvstore-client.ts';
import { freePort } from '#test/support/servers/free-port.ts';
import { sampleIds } from '../testing/samples.ts';
import { planKvstore } from './kvstore-plan.ts';

const first: AddonSpec = {
  ...sampleIds,
  type: 'kvstore',
  replicas: 1,
  memoryBytes: 64 * 1024 * 1024,
  connections: 10,
  password: 'Zq3vT8mK1pX7wB5n',
};

const checkPassword = 'password0of0the0check';

let directory: string;
let port: number;
let server: ChildProcess;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-kvstore-'));
  port = await freePort();
  await writeConfig(first);
  // What the container runs, with the paths and the port of this test.
  const [, ...args] = containerOf(first).args;
  const replaced = args
    .map((arg) => arg.replace('/etc/kvstore', directory).replace('/run/kvstore', directory))
    .map((arg, index) => (args[index - 1] === '--port' ? String(port) : arg));
  server = spawn('redis-server', [...replaced, '--bind', '127.0.0.1', '--dir', directory], { stdio: 'ignore' });
  await expect.poll(() => ask(first.password, ['PING']).catch(() => 'not yet')).toBe('+PONG');
});
afterEach(async () => {
  const ended = once(server, 'exit');
  server.kill('SIGKILL');
  await ended;
  await rm(directory, { recursive: true, force: true });
});

const ask = (password: string, command: string[]): Promise<string | undefined> =>
  askStore(`redis://:${password}@127.0.0.1:${port}`, command);

function containerOf(spec: AddonSpec) {
  const { spec: deployment } = planKvstore(spec, 'valkey', checkPassword).deployment as unknown as {
    spec: { template: { spec: { containers: { args: string[]; readinessProbe: { exec: { command: string[] } } }[] } } };
  };
  const [container] = deployment.template.spec.containers;
  if (container === undefined) throw new Error('No container was planned.');
  return container;
}

function configOf(spec: AddonSpec): Record<string, string> {
  const config = planKvstore(spec, 'valkey', checkPassword).surroundings.find(({ metadata }) =>
    metadata.name.endsWith('-config'),
  );
  return Object.fromEntries(
    Object.entries(config?.data ?? {}).map(([name, text]) => [name, Buffer.from(text, 'base64').toString()]),
  );
}

/** As the kubelet does with the Secret, also when it changes. */
async function writeConfig(spec: AddonSpec): Promise<void> {
  for (const [name, text] of Object.entries(configOf(spec))) await writeFile(join(directory, name), text);
}

/** What the readiness check of the pod does over the socket: the last words of its command, as its user. */
function runCheck(spec: AddonSpec): Promise<string> {
  expect(containerOf(spec).readinessProbe.exec.command.at(-1)).toContain('--user check acl load');
  return new Promise((resolve, reject) => {
    const socket = connect(join(directory, 'admin.sock'));
    let text = '';
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      text += chunk.toString();
      if (text.split('\r\n').length < 3) return;
      socket.destroy();
      resolve(text);
    });
    socket.write(`AUTH check ${checkPassword}\r\nACL LOAD\r\n`);
  });
}

it('the planned server accepts the password, refuses others and administration, and holds three quarters of its memory', async () => {
  await ask(first.password, ['SET', 'value', 'kept']);
  expect(await ask(first.password, ['GET', 'value'])).toBe('kept');
  await expect(ask('wrong', ['GET', 'value'])).rejects.toThrow('WRONGPASS');
  await expect(ask('', ['GET', 'value'])).rejects.toThrow('NOAUTH');
  for (const command of [['CONFIG', 'GET', '*'], ['ACL', 'LIST'], ['SHUTDOWN'], ['DEBUG', 'SLEEP', '1']])
    await expect(ask(first.password, command)).rejects.toThrow(/NOPERM|not allowed/);
  expect(await ask(first.password, ['INFO', 'memory'])).toContain(`maxmemory:${48 * 1024 * 1024}\r\n`);
});

it('a new password is accepted and the old one refused after the next check, and the data stays', async () => {
  await ask(first.password, ['SET', 'value', 'kept']);
  const next = { ...first, password: 'another0password' };
  await writeConfig(next);
  expect(await ask(first.password, ['GET', 'value'])).toBe('kept');
  expect(await runCheck(next)).toContain('+OK\r\n+OK');
  expect(await ask(next.password, ['GET', 'value'])).toBe('kept');
  await expect(ask(first.password, ['GET', 'value'])).rejects.toThrow('WRONGPASS');
});
