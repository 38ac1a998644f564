import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { run } from '#test/support/ssh/ssh-client.ts';
import { loadHostKeys } from './host-keys.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'paas-host-keys-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test('keys are generated once, are readable by their owner only, and never change', async () => {
  const first = await loadHostKeys(path.join(directory, 'ssh'));
  expect(first.map((key) => key.type)).toEqual(['ssh-ed25519', 'ecdsa-sha2-nistp256', 'ssh-rsa']);
  expect(await loadHostKeys(path.join(directory, 'ssh'))).toEqual(first);
  for (const name of await readdir(path.join(directory, 'ssh'))) {
    expect((await stat(path.join(directory, 'ssh', name))).mode & 0o777).toBe(0o600);
  }
  expect((await stat(path.join(directory, 'ssh'))).mode & 0o777).toBe(0o700);
});

test('two processes that start at the same time get the same keys and leave no temporary files', async () => {
  const [one, other] = await Promise.all([loadHostKeys(directory), loadHostKeys(directory)]);
  expect(one).toEqual(other);
  expect((await readdir(directory)).sort()).toEqual(['host_ecdsa_key', 'host_ed25519_key', 'host_rsa_key']);
});

test('ssh-keygen reads the keys and prints the same fingerprints', async () => {
  for (const key of await loadHostKeys(directory)) {
    const file = path.join(directory, 'key.pub');
    await writeFile(file, key.publicKey);
    expect((await run('ssh-keygen', ['-lf', file])).stdout.split(' ')[1]).toBe(key.fingerprint);
  }
  const derived = await run('ssh-keygen', ['-yf', path.join(directory, 'host_rsa_key')]);
  expect(derived.status).toBe(0);
});

test('a key that other users can read is refused with the command that fixes it', async () => {
  await loadHostKeys(directory);
  const file = path.join(directory, 'host_ed25519_key');
  await chmod(file, 0o644);
  await expect(loadHostKeys(directory)).rejects.toThrow(`chmod 600 ${file}`);
});

test('a damaged key is refused and not replaced', async () => {
  await loadHostKeys(directory);
  const file = path.join(directory, 'host_rsa_key');
  await writeFile(file, 'not a key');
  await expect(loadHostKeys(directory)).rejects.toThrow(/host_rsa_key is not an OpenSSH private key/);
  expect(await readFile(file, 'utf8')).toBe('not a key');
});
