import { chmod, mkdir, mkdtemp, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { removeTree } from '../disk/trees.ts';
import { createLocalImages, type ImageDescription, type LocalImages, removeImageLeftovers, type StoredImage } from './images.ts';

const owner = 0x7000_0001;
let dataDir: string;
let images: LocalImages;
let appId: AppId;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'paas-images-'));
  const parts = {
    node: '/parts/node',
    'node-headers': '/parts/include',
    npm: '/parts/npm',
    'static-server': '/parts/static-server.ts',
    'php-server': '/parts/php-server',
  };
  const store = { ensureTool: async ({ name, version }: { name: string; version: string }) => `/store/${name}/${version}` };
  const places = { parts, store };
  images = createLocalImages({
    ...{ dataDir, places },
    ensureOwner: async () => (process.getuid?.() === 0 ? owner : undefined),
    ensureUsers: async () => ({ root: owner, first: 0x1001_0000 }),
  });
  appId = newUuid<AppId>();
});
afterEach(() => removeTree(dataDir));

const description: ImageDescription = {
  builder: 'node',
  processes: { web: 'npm start' },
  env: { NODE_ENV: 'production' },
  path: ['/opt/paas/node/bin'],
  toolchain: [{ kind: 'platform', name: 'node' }],
};

async function makeTree(change: (root: string) => Promise<void> = async () => undefined): Promise<string> {
  const root = await mkdtemp(join(dataDir, 'built-'));
  await mkdir(join(root, 'lib'));
  await writeFile(join(root, 'lib/a.js'), 'a');
  await writeFile(join(root, 'run'), '#!/bin/sh', { mode: 0o700 });
  await symlink('lib/a.js', join(root, 'link'));
  await change(root);
  return root;
}

const move = (root: string) => (target: string) => rename(root, target);

async function store(root: string, described = description): Promise<StoredImage> {
  const stored = await images.storeImage(appId, move(root), described, 1_000_000);
  if (stored === undefined) throw new Error('too large');
  return stored;
}

describe('an image', () => {
  it('has an address that depends on its content only, not on times, owners or the order of creation', async () => {
    const first = await store(await makeTree());
    expect(await store(await makeTree((root) => chmod(join(root, 'lib/a.js'), 0o640)))).toEqual(first);
    expect(first.imageUrl).toBe(`slug://${appId}@sha256:${first.digest}`);
  });

  it.each<[string, (root: string) => Promise<void>]>([
    ['a byte', (root) => writeFile(join(root, 'lib/a.js'), 'b')],
    ['a mode', (root) => chmod(join(root, 'lib/a.js'), 0o755)],
    ['a name', (root) => writeFile(join(root, 'lib/b.js'), '')],
    ['an empty directory', (root) => mkdir(join(root, 'empty'))],
    ['a symlink', (root) => symlink('lib', join(root, 'other'))],
  ])('has another address when %s differs', async (_, change) => {
    expect((await store(await makeTree(change))).digest).not.toBe((await store(await makeTree())).digest);
  });

  it('has another address when what it runs differs', async () => {
    const other = { ...description, processes: { web: 'node other.js' } };
    expect((await store(await makeTree(), other)).digest).not.toBe((await store(await makeTree())).digest);
  });

  it('belongs to the uid of its app, and keeps executable files executable', async () => {
    const { root } = await images.readImage((await store(await makeTree())).imageUrl);
    expect((await stat(join(root, 'lib/a.js'))).mode & 0o7777).toBe(0o644);
    expect((await stat(join(root, 'run'))).mode & 0o7777).toBe(0o755);
    if (process.getuid?.() === 0)
      for (const name of ['', 'lib', 'lib/a.js', 'run']) expect((await stat(join(root, name))).uid).toBe(owner);
    expect(await readFile(join(root, 'link'), 'utf8')).toBe('a');
  });

  it('loses its setuid bits', async () => {
    const { root } = await images.readImage((await store(await makeTree((built) => chmod(join(built, 'run'), 0o6755)))).imageUrl);
    expect((await stat(join(root, 'run'))).mode & 0o7777).toBe(0o755);
  });

  it('contains how it is run: mounts, PATH, variables', async () => {
    const image = await images.readImage((await store(await makeTree())).imageUrl);
    expect(image.mounts).toEqual([{ source: '/parts/node', target: '/opt/paas/node/bin/node' }]);
    expect(image.env).toMatchObject({
      NODE_ENV: 'production',
      PATH: '/opt/paas/node/bin:/app/node_modules/.bin:/usr/local/bin:/usr/bin:/bin',
    });
    expect(image.processes).toEqual({ web: 'npm start' });
  });

  it('that is too large is not stored', async () => {
    expect(
      await images.storeImage(
        appId,
        move(await makeTree((root) => writeFile(join(root, 'large'), 'x'.repeat(200)))),
        description,
        100,
      ),
    ).toBeUndefined();
    expect(await readdir(join(dataDir, 'images'))).toEqual([]);
  });

  it('that does not exist is named in the error, with what to do', async () => {
    await expect(images.readImage(`slug://${appId}@sha256:${'0'.repeat(64)}`)).rejects.toThrow('Push again');
  });

  it('that a crash left half stored or half deleted does not exist, and is removed at the next start', async () => {
    await mkdir(join(dataDir, 'images/.staged-1/app'), { recursive: true });
    await mkdir(join(dataDir, 'images/.deleted-1/app'), { recursive: true });
    const kept = await store(await makeTree());
    await removeImageLeftovers(dataDir);
    expect(await readdir(join(dataDir, 'images'))).toEqual([appId]);
    expect(await images.imageExists(kept.imageUrl)).toBe(true);
  });
});
