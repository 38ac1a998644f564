import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { ifMissing } from '#shared/files/if-missing.ts';
import type { AppId } from '#shared/ids.ts';
import type { BuildCaches } from '#shared/platform/build-caches.ts';
import { measureTree, moveTree, removeTree } from '../disk/trees.ts';
import type { Volume, Volumes } from '../disk/volumes.ts';
import type { SandboxBind, SandboxMount } from '../sandbox/sandbox.ts';
import type { CachedTree } from './plans/build-plan.ts';

/**
 * An app's cache volume. Package managers write `tools/<name>` in the sandbox and keep it consistent themselves. `trees/<path>` holds
 * finished directories such as node_modules, which the platform replaces by renaming. Trees are copied inside the sandbox, as the
 * app's user: outside, a path that the app's code has shaped could lead anywhere (decision 25).
 */
export interface CacheVolume {
  /** Directories for tools, made the code's own; to be mounted at /cache. */
  mountTools(names: readonly string[], owner: ToolOwner): Promise<readonly SandboxMount[]>;
  /** Copies the tree saved under this key to its place in the app. False if there is none. */
  restoreTree(tree: CachedTree, copy: CopyInSandbox): Promise<boolean>;
  /** Saves the tree as it is in the app. Replaces the one saved before completely or not at all. */
  saveTree(tree: CachedTree, copy: CopyInSandbox, owner: ToolOwner): Promise<void>;
  /** How much of its file system is used, from 0 to 1; 0 where it has none of its own. */
  readUsedShare(): Promise<number>;
  /** Drops the largest parts until no more than `longestBytes` are used; their names. */
  trim(longestBytes: number): Promise<readonly string[]>;
  /** To be called when the build is over: a volume that was flushed meanwhile goes now. */
  release(): Promise<void>;
}

/** Gives a directory to the user that the app's code runs as. */
export type ToolOwner = (directory: string) => Promise<void>;

/**
 * Copies a directory inside the sandbox, where /app is the app's directory.
 * @param mount what is mounted for the copy besides the build's own mounts
 * @throws Error if it cannot be copied
 */
export type CopyInSandbox = (copy: { mount: SandboxBind; from: string; to: string }) => Promise<void>;

/** Where a directory of `trees` is mounted while it is copied. */
const treeMount = '/paas-tree';

export interface LocalBuildCaches extends BuildCaches {
  /** Makes it if missing. A flush while it is open leaves the build undisturbed and the next one Cold. */
  openVolume(appId: AppId): Promise<CacheVolume>;
}

interface OpenVolume {
  /** Where its files are. */
  directory: string;
  /** The file system that it is; undefined where it is a mere directory. */
  readonly mounted: Volume | undefined;
  /** What is deleted with it. */
  holder: string;
  readonly appId: AppId;
  flushed: boolean;
}

/** @param disk what limits the size of a cache; left out: `trim` alone does */
export function createLocalBuildCaches(dataDir: string, disk?: { volumes: Volumes; bytes: number }): LocalBuildCaches {
  const base = `${dataDir}/caches`;
  const open = new Set<OpenVolume>();
  const ensureCache: BuildCaches['ensureCache'] = async (appId) => {
    await mkdir(base, { recursive: true, mode: 0o700 });
    try {
      await mkdir(`${base}/${appId}`);
      return { state: 'created' };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return { state: 'existed' };
      throw error;
    }
  };
  return {
    ensureCache,
    async deleteCache(appId) {
      const rubbish = `${base}/.deleted-${randomUUID()}`;
      if (!(await moveTree(`${base}/${appId}`, rubbish))) return false;
      const users = [...open].filter((volume) => volume.appId === appId && !volume.flushed);
      for (const volume of users) {
        volume.flushed = true;
        volume.holder = rubbish;
        if (volume.mounted === undefined) volume.directory = rubbish;
      }
      if (users.length === 0) await removeTree(rubbish);
      return true;
    },
    async readCache(appId) {
      const names = await readdir(`${base}/${appId}`).catch(ifMissing(undefined));
      return names === undefined ? undefined : { state: 'ready', usedBytes: await measureTree(`${base}/${appId}`) };
    },
    async openVolume(appId) {
      await ensureCache(appId);
      const volume: OpenVolume = { ...(await findOrMount(appId)), appId, flushed: false };
      open.add(volume);
      return {
        ...accessVolume(volume),
        async release() {
          open.delete(volume);
          const shared = [...open].some((other) => other.directory === volume.directory);
          if (shared) return;
          volume.mounted?.unmount();
          if (volume.flushed) await removeTree(volume.holder);
        },
      };
    },
  };

  async function findOrMount(appId: AppId): Promise<Pick<OpenVolume, 'holder' | 'directory' | 'mounted'>> {
    const holder = `${base}/${appId}`;
    const shared = [...open].find((volume) => volume.appId === appId && !volume.flushed);
    if (shared !== undefined) return { holder, directory: shared.directory, mounted: shared.mounted };
    const file = `${holder}/${volumeFile}`;
    const mounted = disk && (await disk.volumes.mount({ file, bytes: disk.bytes, lasting: true }));
    const directory = mounted?.path ?? holder;
    await removeHalfSavedTrees(directory);
    return { holder, directory, mounted };
  }
}

/** The file system of a cache, in the cache's directory. */
const volumeFile = 'volume';

/** Removes flushed caches that a crash has left. To be called before any build. */
export async function removeCacheRubbish(dataDir: string): Promise<void> {
  const base = `${dataDir}/caches`;
  for (const name of await readdir(base).catch(ifMissing([]))) if (name.startsWith('.')) await removeTree(`${base}/${name}`);
}

/** What a crash has left of trees that were being saved. */
async function removeHalfSavedTrees(directory: string): Promise<void> {
  const trees = await readdir(`${directory}/trees`).catch(ifMissing([]));
  for (const tree of trees.filter((name) => name.startsWith('.'))) await removeTree(`${directory}/trees/${tree}`);
}

function accessVolume(volume: OpenVolume): Omit<CacheVolume, 'release'> {
  const treeDirectory = (tree: CachedTree): string => `${volume.directory}/trees/${tree.path.replaceAll(/[^A-Za-z0-9]/g, '_')}`;
  return {
    async mountTools(names, owner) {
      const mounts: SandboxMount[] = [];
      for (const name of names) {
        const source = `${volume.directory}/tools/${name}`;
        if ((await mkdir(source, { recursive: true })) !== undefined) await owner(source);
        mounts.push({ source, target: `/cache/${name}`, writable: true });
      }
      return mounts;
    },
    async restoreTree(tree, copy) {
      const saved = treeDirectory(tree);
      const key = await readFile(`${saved}/key`, 'utf8').catch(ifMissing(undefined));
      if (key !== tree.key) return false;
      const mount = { source: saved, target: treeMount };
      await copy({ mount, from: `${treeMount}/tree`, to: `/app/${tree.path}` });
      return true;
    },
    async saveTree(tree, copy, owner) {
      const saved = treeDirectory(tree);
      const parent = `${volume.directory}/trees`;
      const [staged, old] = [`${parent}/.new-${randomUUID()}`, `${parent}/.old-${randomUUID()}`];
      try {
        await mkdir(staged, { recursive: true });
        await owner(staged);
        const mount = { source: staged, target: treeMount, writable: true };
        await copy({ mount, from: `/app/${tree.path}`, to: `${treeMount}/tree` });
        await writeFile(`${staged}/key`, tree.key);
        await moveTree(saved, old);
        await moveTree(staged, saved);
      } finally {
        await Promise.all([removeTree(staged), removeTree(old)]);
      }
    },
    readUsedShare: async () => (await volume.mounted?.readUsedShare()) ?? 0,
    async trim(longestBytes) {
      if (((await volume.mounted?.readUsedBytes()) ?? Number.POSITIVE_INFINITY) <= longestBytes) return [];
      const parts = (await Promise.all(['tools', 'trees'].map((kind) => listParts(`${volume.directory}/${kind}`)))).flat();
      let used = parts.reduce((sum, part) => sum + part.bytes, 0);
      const dropped: string[] = [];
      for (const part of parts.sort((one, other) => other.bytes - one.bytes)) {
        if (used <= longestBytes) break;
        await removeTree(part.path);
        used -= part.bytes;
        dropped.push(part.name);
      }
      return dropped;
    },
  };
}

interface CachePart {
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
}

async function listParts(directory: string): Promise<readonly CachePart[]> {
  const names = await readdir(directory).catch(ifMissing([]));
  return Promise.all(
    names.map(async (name) => ({ name, path: `${directory}/${name}`, bytes: await measureTree(`${directory}/${name}`) })),
  );
}
