import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CredentialStore, credentialsPath } from '#cli/session/credentials.ts';
import { withLogin } from '#cli/session/stored-login.ts';

const login = { email: 'ada@example.com', access_token: 'a', refresh_token: 'r', expires_at: '2026-03-01T12:00:00.000Z' };

describe('credentialsPath', () => {
  it.each([
    [{ HOME: '/home/ada' }, '/home/ada/.config/paas/credentials.json'],
    [{ HOME: '/home/ada', XDG_CONFIG_HOME: '/elsewhere' }, '/elsewhere/paas/credentials.json'],
    [{ HOME: '/home/ada', XDG_CONFIG_HOME: 'relative' }, '/home/ada/.config/paas/credentials.json'],
  ])('for %j is %s', (env, path) => {
    expect(credentialsPath(env)).toBe(path);
  });
});

describe('CredentialStore', () => {
  let directory: string;
  let path: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'paas-credentials-'));
    path = join(directory, 'paas', 'credentials.json');
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  it('is empty before the first login, and reading creates no file', async () => {
    expect(await new CredentialStore(path).read()).toEqual({ hosts: {} });
    expect(await readdir(directory)).toEqual([]);
  });

  it('loses no login when many are stored at the same time', async () => {
    const hosts = Array.from({ length: 20 }, (_, index) => `https://paas-${index}.example.com`);
    await Promise.all(hosts.map((host) => new CredentialStore(path).update((present) => withLogin(present, host, login))));
    expect(Object.keys((await new CredentialStore(path).read()).hosts).toSorted()).toEqual(hosts.toSorted());
  });

  it('makes a file private that others could read, and leaves no temporary file', async () => {
    await mkdir(join(directory, 'paas'));
    await writeFile(path, '{"hosts":{}}');
    await chmod(path, 0o644);
    await new CredentialStore(path).update((present) => withLogin(present, 'https://paas.example.com', login));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await readdir(join(directory, 'paas'))).toSorted()).toEqual(['credentials.json', 'credentials.json.lock']);
  });

  it('stays unchanged when a change fails', async () => {
    const store = new CredentialStore(path);
    await store.update((present) => withLogin(present, 'https://paas.example.com', login));
    const before = await readFile(path, 'utf8');
    await expect(store.update(() => Promise.reject(new Error('no network')))).rejects.toThrow('no network');
    expect(await readFile(path, 'utf8')).toBe(before);
  });

  it.each([
    '',
    '{',
    '[]',
    '{"hosts":{"h":{"access_token":"s3cret"}}}',
    '{"hosts":{"h":{"email":"e","access_token":"s3cret","expires_at":"soon"}}}',
  ])('reports that %j is not valid without quoting it', async (text) => {
    await mkdir(join(directory, 'paas'));
    await writeFile(path, text);
    const error = await new CredentialStore(path).read().catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      message: `${path} is not a valid credentials file.`,
      hint: 'Remove the file and run `paas login`.',
    });
    expect(String(error)).not.toContain('s3cret');
  });
});
