import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { type CopyInSandbox, createLocalBuildCaches, type LocalBuildCaches, removeCacheRubbish } from './build-caches.ts';

let dataDir: string;
let caches: LocalBuildCaches;
let appId: AppId;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'paas-caches-'));
  caches = createLocalBuildCaches(dataDir);
  appId = newUuid<AppId>();
});
afterEach(() => rm(dataDir, { recursive: true }));

async function makeTree(name: string, text: string): Promise<string> {
  const path = join(dataDir, name);
  await mkdir(join(path, 'deep'), { recursive: true });
  await writeFile(join(path, 'deep/file'), text);
  return path;
}

const tree = (key: string) => ({ path: 'node_modules', key });
const keepOwner = async (): Promise<void> => undefined;

/** Copies like the sandbox does, with `directory` as the tree in the app. */
function appAt(directory: string): CopyInSandbox {
  return async ({ mount, from, to }) => {
    const [source, target] = [from, to].map((path) =>
      path.startsWith('/app/') ? directory : path.replace(mount.target, mount.source),
    );
    await cp(source ?? '', target ?? '', { recursive: true });
  };
}

describe('a cached tree', () => {
  it('comes back under the key it was saved under, and under no other', async () => {
    const volume = await caches.openVolume(appId);
    await volume.saveTree(tree('one'), appAt(await makeTree('built', 'first')), keepOwner);
    expect(await volume.restoreTree(tree('two'), appAt(join(dataDir, 'no')))).toBe(false);
    expect(await volume.restoreTree(tree('one'), appAt(join(dataDir, 'yes')))).toBe(true);
    expect(await readFile(join(dataDir, 'yes/deep/file'), 'utf8')).toBe('first');
  });

  it('shares no file with what it was restored to: changing that leaves the cache alone', async () => {
    const volume = await caches.openVolume(appId);
    await volume.saveTree(tree('one'), appAt(await makeTree('built', 'first')), keepOwner);
    await volume.restoreTree(tree('one'), appAt(join(dataDir, 'a')));
    await writeFile(join(dataDir, 'a/deep/file'), 'changed');
    await volume.restoreTree(tree('one'), appAt(join(dataDir, 'b')));
    expect(await readFile(join(dataDir, 'b/deep/file'), 'utf8')).toBe('first');
  });

  it('is the earlier one still when saving a new one fails', async () => {
    const volume = await caches.openVolume(appId);
    await volume.saveTree(tree('one'), appAt(await makeTree('built', 'first')), keepOwner);
    await expect(volume.saveTree(tree('two'), appAt(join(dataDir, 'nowhere')), keepOwner)).rejects.toThrow();
    expect(await volume.restoreTree(tree('one'), appAt(join(dataDir, 'a')))).toBe(true);
  });

  it('that a crash left half saved is no tree, and is removed before the next build', async () => {
    const half = join(dataDir, 'caches', appId, 'trees/.new-1');
    await mkdir(join(half, 'tree'), { recursive: true });
    const volume = await caches.openVolume(appId);
    expect(await volume.restoreTree(tree('one'), appAt(join(dataDir, 'a')))).toBe(false);
    expect(await readdir(join(dataDir, 'caches', appId, 'trees'))).toEqual([]);
  });
});

describe('a flush', () => {
  it('during a build leaves the build what it works with, and the next one nothing', async () => {
    const volume = await caches.openVolume(appId);
    await volume.saveTree(tree('one'), appAt(await makeTree('built', 'first')), keepOwner);
    const [npm] = await volume.mountTools(['npm'], keepOwner);
    expect(await caches.deleteCache(appId)).toBe(true);
    expect(await caches.ensureCache(appId)).toEqual({ state: 'created' });

    expect(await volume.restoreTree(tree('one'), appAt(join(dataDir, 'a')))).toBe(true);
    const [still] = await volume.mountTools(['npm'], keepOwner);
    if (still === undefined || npm === undefined || 'linkTo' in still) throw new Error('no mount');
    expect((await stat(still.source)).isDirectory()).toBe(true);

    await volume.release();
    await expect(stat(still.source)).rejects.toThrow('ENOENT');
    const next = await caches.openVolume(appId);
    expect(await next.restoreTree(tree('one'), appAt(join(dataDir, 'b')))).toBe(false);
  });

  it('interrupted by a crash is finished at the next start', async () => {
    await mkdir(join(dataDir, 'caches/.deleted-1/trees'), { recursive: true });
    await removeCacheRubbish(dataDir);
    expect(await readdir(join(dataDir, 'caches'))).toEqual([]);
  });
});

describe('a volume over its limit', () => {
  it('drops its largest parts until it is below, and names them', async () => {
    const volume = await caches.openVolume(appId);
    const mounts = await volume.mountTools(['large', 'small'], keepOwner);
    for (const mount of mounts) {
      if ('source' in mount)
        await writeFile(join(mount.source, 'file'), 'x'.repeat(mount.target.endsWith('large') ? 900_000 : 90_000));
    }
    expect(await volume.trim(2_000_000)).toEqual([]);
    expect(await volume.trim(500_000)).toEqual(['large']);
    const used = await caches.readCache(appId);
    expect(used?.usedBytes).toBeLessThan(500_000);
    expect(used?.usedBytes).toBeGreaterThan(90_000);
  });
});
