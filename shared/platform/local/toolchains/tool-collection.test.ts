import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listNeededTools } from '../images/needed-tools.ts';
import { collectTools } from './tool-collection.ts';
import { requireRoom } from './tool-room.ts';

const day = 24 * 60 * 60 * 1000;
const now = Date.parse('2026-06-01T00:00:00Z');
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-tools-'));
});
afterEach(() => rm(directory, { recursive: true }));

/** A tool of 100,000 bytes that was last used some days ago. */
async function addTool(name: string, days: number): Promise<void> {
  const path = `${directory}/${name}`;
  await mkdir(`${path}/bin`, { recursive: true });
  await writeFile(`${path}/bin/program`, Buffer.alloc(100_000));
  const used = new Date(now - days * day);
  await utimes(path, used, used);
}

const collect = (needed: readonly string[] = [], longestBytes?: number): Promise<readonly string[]> =>
  collectTools(
    { directory, listNeeded: async () => new Set(needed), ...(longestBytes === undefined ? {} : { longestBytes }) },
    now,
  );

describe('a tool of the store', () => {
  it('goes when nothing has used it for a month, unless an image needs it', async () => {
    await Promise.all([addTool('node/22.0.0', 40), addTool('node/20.0.0', 50), addTool('go/1.25.0', 20)]);
    expect(await collect(['node/22.0.0'])).toEqual(['node/20.0.0']);
    expect(await readdir(`${directory}/node`)).toEqual(['22.0.0']);
    expect(await readdir(`${directory}/go`)).toEqual(['1.25.0']);
    expect((await readdir(directory)).sort()).toEqual(['go', 'node']);
  });

  it('goes earlier when the store is too large, the one that was used last longest ago first', async () => {
    await Promise.all([addTool('node/22.0.0', 3), addTool('node/20.0.0', 5), addTool('go/1.25.0', 4)]);
    expect(await collect([], 250_000)).toEqual(['node/20.0.0']);
  });

  it('stays for an hour after its last use whatever the size of the store', async () => {
    await Promise.all([addTool('node/22.0.0', 0.9 / 24), addTool('node/20.0.0', 1.1 / 24)]);
    expect(await collect([], 1)).toEqual(['node/20.0.0']);
  });

  it('leaves room to the systems of apps, and they to it', async () => {
    await Promise.all([addTool('debian-system/1.0.0+a', 2), addTool('debian-system/1.0.0+b', 3), addTool('node/22.0.0', 4)]);
    expect(await collect([], 150_000)).toEqual(['debian-system/1.0.0+b']);
    await expect(requireRoom(directory, 'node', 150_000)).resolves.toBeUndefined();
    await expect(requireRoom(directory, 'node', 50_000)).rejects.toThrow('no room for another toolchain');
    await expect(requireRoom(directory, 'debian-system', 150_000)).resolves.toBeUndefined();
  });

  it('is needed by an image whose description names it', async () => {
    const image = `${directory}/images/app/digest`;
    await mkdir(image, { recursive: true });
    const toolchain = [
      { kind: 'stored', name: 'node', version: '22.0.0' },
      { kind: 'host', path: '/opt' },
    ];
    await writeFile(`${image}/image.json`, JSON.stringify({ toolchain }));
    await mkdir(`${directory}/images/.staged-x`);
    expect([...(await listNeededTools(`${directory}`))]).toEqual(['node/22.0.0']);
  });

  it('stays if the images cannot be read', async () => {
    await addTool('node/20.0.0', 50);
    const listNeeded = () => Promise.reject(new Error('unreadable'));
    await expect(collectTools({ directory, listNeeded }, now)).rejects.toThrow('unreadable');
    expect(await readdir(`${directory}/node`)).toEqual(['20.0.0']);
  });
});
