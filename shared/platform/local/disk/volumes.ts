import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { access, mkdir, rename, rm, rmdir, statfs, truncate, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };

/** What /proc/mounts calls the directory of all volumes of a platform. Instances leave these mounts (`sandbox-layer.ts`). */
export const volumesMountName = 'paas-volumes';

/** A file system of a fixed size, in a file of the data directory. */
export interface Volume {
  /** Absolute path at which it is mounted. Its top directory belongs to this process's user. */
  readonly path: string;
  /** Of its bytes or of its files, whichever is the larger share: from 0 to 1. */
  readUsedShare(): Promise<number>;
  /** Resolves at once; the next `mount` of the same file waits until it is done. */
  unmount(): void;
}

export interface VolumeSpec {
  /** Absolute path of the file, which takes as much disk space as is used of the volume. Created if missing. */
  readonly file: string;
  readonly bytes: number;
  /** False: the volume ends with its build, and nothing of it is written to the disk in vain. */
  readonly lasting: boolean;
}

/** File systems of limited size and number of files, for what tenants' code may write. */
export interface Volumes {
  /** Why there are none here; undefined if there are. */
  readonly problem: string | undefined;
  /** One that was damaged, as by a power cut, is replaced by an empty one. */
  mount(spec: VolumeSpec): Promise<Volume>;
  /** Unmounts everything. To be called when no code runs any more. */
  close(): Promise<void>;
}

/** Finds out whether this process may create volumes, and unmounts what a crash has left. */
export async function openVolumes(dataDir: string): Promise<Volumes> {
  const root = `${dataDir}/volumes`;
  await run('umount', ['-n', '-l', root], { env }).catch(() => undefined); // usually there is none
  const volumes = createVolumes(root);
  const problem = await probe(volumes, `${dataDir}/volume-probe`);
  return { ...volumes, problem };
}

async function probe(volumes: Omit<Volumes, 'problem'>, file: string): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'only root may mount file systems';
  try {
    (await volumes.mount({ file, bytes: 4 * 1024 * 1024, lasting: false })).unmount();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await volumes.close();
    await rm(file, { force: true });
  }
}

function createVolumes(root: string): Omit<Volumes, 'problem'> {
  /** The parent of all mounts: unmounting it unmounts all. Mounted with the first volume. */
  let parent: Promise<void> | undefined;
  let mounted = 0;
  /** Unmounts that are not done, by file. */
  const pending = new Map<string, Promise<void>>();
  /** Changes of `parent`, one after the other. */
  let turn: Promise<unknown> = Promise.resolve();

  function inTurn<Result>(task: () => Promise<Result>): Promise<Result> {
    const result = turn.then(task);
    turn = result.catch(() => undefined);
    return result;
  }

  async function ensureParent(): Promise<void> {
    await mkdir(root, { recursive: true, mode: 0o711 });
    const options = `size=1m,nr_inodes=10k,mode=0711,nosuid,nodev`;
    await run('mount', ['-n', '-t', 'tmpfs', '-o', options, volumesMountName, root], { env });
  }

  async function releaseParent(): Promise<void> {
    if (mounted > 0 || parent === undefined) return;
    parent = undefined;
    await run('umount', ['-n', '-l', root], { env });
  }

  async function enter(): Promise<void> {
    mounted += 1;
    try {
      await inTurn(() => (parent ??= ensureParent()));
    } catch (error) {
      await leave();
      parent = undefined;
      throw error;
    }
  }

  async function leave(): Promise<void> {
    mounted -= 1;
    await inTurn(releaseParent).catch(() => undefined);
  }

  return {
    async mount(spec) {
      await pending.get(spec.file);
      await enter();
      const path = `${root}/${randomUUID()}`;
      try {
        await mkdir(path, { mode: 0o711 });
        if (!(await exists(spec.file))) await create(spec);
        await mountFile(spec, path).catch(async () => {
          await rm(spec.file, { force: true });
          await create(spec);
          await mountFile(spec, path);
        });
      } catch (error) {
        await leave();
        throw error;
      }
      return {
        path,
        readUsedShare: () => readUsedShare(path),
        unmount() {
          const done = run('umount', ['-n', '-l', path], { env })
            .then(() => rmdir(path))
            .catch(() => undefined) // `close` unmounts what is left
            .then(() => leave())
            .finally(() => pending.delete(spec.file));
          pending.set(spec.file, done);
        },
      };
    },
    async close() {
      await Promise.all(pending.values());
      await inTurn(async () => {
        if (parent === undefined) return;
        parent = undefined;
        await run('umount', ['-n', '-l', root], { env });
      });
      await rmdir(root).catch(() => undefined);
    },
  };
}

async function create({ file, bytes, lasting }: VolumeSpec): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o711 });
  const unfinished = `${file}.new`;
  await writeFile(unfinished, '', { mode: 0o600 });
  await truncate(unfinished, bytes);
  // The number of files is limited by the file system: one for each 16 KiB.
  const options = ['-q', '-F', '-m', '0', '-i', '16384', '-E', 'lazy_itable_init=1,lazy_journal_init=1,nodiscard'];
  await run('mkfs.ext4', [...options, ...(lasting ? [] : ['-O', '^has_journal']), unfinished], { env });
  await rename(unfinished, file);
}

async function mountFile({ file, lasting }: VolumeSpec, path: string): Promise<void> {
  const options = ['loop', 'nosuid', 'nodev', 'noatime', ...(lasting ? ['discard'] : ['nobarrier'])];
  await run('mount', ['-n', '-t', 'ext4', '-o', options.join(','), file, path], { env });
}

async function readUsedShare(path: string): Promise<number> {
  const { blocks, bfree, files, ffree } = await statfs(path);
  return Math.max(1 - bfree / blocks, 1 - ffree / files);
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
