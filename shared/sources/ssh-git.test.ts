import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ssh2 from 'ssh2';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GitUrl, parseGitUrl } from '#shared/sources/git-url.ts';
import type { GuardedRequestOptions } from '#shared/sources/guarded-request.ts';
import type { SourceRequest } from '#shared/sources/source-hosts.ts';
import { createSourceKey, fetchBySsh, listTipsBySsh } from '#shared/sources/ssh-git.ts';
import { authenticateForLfs } from '#shared/sources/ssh-lfs.ts';
import { runChecked } from '#test/support/run-program.ts';

const key = createSourceKey();
const allowed = ssh2.utils.parseKey(key.publicKey);
const commands: string[] = [];
/** What `git-lfs-authenticate` prints. */
let lfsAnswer = '';
let directory: string;
let tip: string;
let server: ssh2.Server;
let url: string;

/** Git's own upload-pack behind an SSH server that takes one key. */
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-ssh-git-'));
  await runChecked('git', ['init', '-q', '-b', 'main', directory]);
  const identity = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com'];
  await runChecked('git', ['-C', directory, ...identity, 'commit', '-q', '--allow-empty', '-m', 'First']);
  tip = (await runChecked('git', ['-C', directory, 'rev-parse', 'HEAD'])).stdout.trim();
  const hostKey = ssh2.utils.generateKeyPairSync('ed25519').private;
  server = new ssh2.Server({ hostKeys: [hostKey] }, (connection) => {
    connection.on('error', () => undefined);
    connection.on('authentication', (asked) => {
      if (asked.method !== 'publickey' || allowed instanceof Error) return asked.reject(['publickey']);
      if (!asked.key.data.equals(allowed.getPublicSSH())) return asked.reject(['publickey']);
      if (asked.signature === undefined || asked.blob === undefined) return asked.accept();
      return allowed.verify(asked.blob, asked.signature, asked.hashAlgo) === true ? asked.accept() : asked.reject();
    });
    connection.on('session', (accept) => {
      let protocol = '';
      const session = accept();
      session.on('env', (acceptEnv, _reject, { key: name, val }) => {
        if (name === 'GIT_PROTOCOL') protocol = val;
        acceptEnv?.();
      });
      session.on('exec', (acceptExec, _reject, { command }) => {
        commands.push(command);
        const channel = acceptExec();
        if (command.startsWith('git-lfs-authenticate')) return channel.end(lfsAnswer);
        const git = spawn('git', ['upload-pack', directory], { env: { PATH: process.env['PATH'], GIT_PROTOCOL: protocol } });
        channel.pipe(git.stdin).on('error', () => undefined);
        git.stdout.pipe(channel);
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `ssh://git@127.0.0.1:${(server.address() as AddressInfo).port}/ada/private.git`;
});
afterAll(async () => {
  await new Promise<void>((resolve) => server.close(() => resolve()));
  await rm(directory, { recursive: true, force: true });
});

const fetch = (change: Partial<SourceRequest> = {}) => ask(fetchBySsh, change);

function ask<Result>(
  by: (asked: SourceRequest, at: GitUrl, options: GuardedRequestOptions) => Promise<Result>,
  change: Partial<SourceRequest> = {},
): Promise<Result> {
  const asked = { url, ref: 'refs/heads/main', commit: undefined, haves: [], signal: AbortSignal.timeout(20_000) };
  const at = parseGitUrl(url);
  if (at === undefined) throw new Error('the address is not one');
  const lookUp = () => Promise.reject(new Error('no name here'));
  return by({ ...asked, key: { privateKey: key.privateKey, hostKeys: {} }, ...change }, at, {
    lookUp,
    allowPrivate: true,
  });
}

async function readAll(pack: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of pack) chunks.push(chunk);
  return Buffer.concat(chunks);
}

describe('a repository by SSH', () => {
  it('lists its branches, and the one that HEAD names', async () => {
    const tips = await ask(listTipsBySsh);
    expect({ ...tips, branches: Object.fromEntries(tips.branches) }).toEqual({
      branches: { main: tip },
      defaultBranch: 'main',
      newHostKey: { host: new URL(url).host, key: expect.any(String) },
    });
  });

  it('is read with the deploy key, and its host remembered', async () => {
    const fetched = await fetch();
    expect(fetched.commit).toBe(tip);
    expect((await readAll(fetched.pack)).toString('latin1', 0, 4)).toBe('PACK');
    expect(commands.at(-1)).toBe("git-upload-pack '/ada/private'");
    const { host, key: hostKey } = fetched.newHostKey ?? { host: '', key: '' };
    const again = await fetch({ key: { privateKey: key.privateKey, hostKeys: { [host]: hostKey } } });
    expect(again.newHostKey).toBeUndefined();
    await readAll(again.pack);
  });

  it('is not read from a host whose key has changed', async () => {
    const hostKeys = { [new URL(url).host]: Buffer.from('another').toString('base64') };
    await expect(fetch({ key: { privateKey: key.privateKey, hostKeys } })).rejects.toThrow(/^The host key of .* has changed\./);
  });

  it('says that the deploy key is missing there, or has not been made', async () => {
    const stranger = createSourceKey();
    await expect(fetch({ key: { privateKey: stranger.privateKey, hostKeys: {} } })).rejects.toThrow('deploy key');
    await expect(fetch({ key: undefined })).rejects.toThrow('no deploy key yet');
  });

  it('is read with a key that can be read itself, whatever byte its public half begins with', () => {
    for (let count = 0; count < 1000; count++) {
      const made = createSourceKey();
      expect(ssh2.utils.parseKey(made.privateKey)).not.toBeInstanceOf(Error);
    }
  });

  it('has its large files at the server that it names over SSH, with the credentials that it gives', async () => {
    const header = { Authorization: 'RemoteAuth a-token' };
    lfsAnswer = JSON.stringify({ href: 'https://lfs.example.com/ada/private/', header, expires_in: 600 });
    expect(await ask(authenticateForLfs)).toMatchObject({
      endpoint: 'https://lfs.example.com/ada/private',
      credentials: { origin: 'https://lfs.example.com', headers: header },
    });
    expect(commands.at(-1)).toBe("git-lfs-authenticate '/ada/private' download");
  });

  it.each([
    ['nothing', ''],
    ['text', 'unknown command'],
    ['another kind of address', '{"href":"file:///etc/passwd"}'],
    ['a header that splits the request', '{"href":"https://lfs.example.com/","header":{"a":"b\\r\\nc: d"}}'],
    ['too much', `"${'x'.repeat(100_000)}"`],
  ])('says that a host has no large files over SSH that answers %s', async (_what, answer) => {
    lfsAnswer = answer;
    await expect(ask(authenticateForLfs)).rejects.toThrow('does not offer Git LFS over SSH');
  });

  it('says that there is no such branch', async () => {
    await expect(fetch({ ref: 'refs/heads/other' })).rejects.toThrow('no branch other');
  });
});
