import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { listenOnSocket, reachableSocketPath } from './unix-socket.ts';

const listenAndConnect = async (path: string): Promise<string> => {
  const server = createServer((socket) => socket.end('hello'));
  await listenOnSocket(server, path);
  const answer = await new Promise<string>((resolve, reject) => {
    connect(reachableSocketPath(path))
      .once('error', reject)
      .once('data', (data) => resolve(data.toString()));
  });
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  await new Promise((resolve) => server.close(resolve));
  return answer;
};

describe('a unix socket', () => {
  it('works in a directory whose path is longer than an address may be, and is private', async () => {
    const root = await mkdtemp(join(tmpdir(), 'paas-socket-'));
    const deep = join(root, 'a'.repeat(100), 'b'.repeat(100));
    await mkdir(deep, { recursive: true });
    expect(await listenAndConnect(join(deep, 'control.sock'))).toBe('hello');
    await expect(stat(join(deep, 'control.sock'))).rejects.toThrow('ENOENT');
    await rm(root, { recursive: true });
  });

  it('replaces the file that a crashed process has left', async () => {
    const root = await mkdtemp(join(tmpdir(), 'paas-socket-'));
    await writeFile(join(root, 'api.sock'), '');
    expect(await listenAndConnect(join(root, 'api.sock'))).toBe('hello');
    await rm(root, { recursive: true });
  });
});
