import { randomUUID } from 'node:crypto';
import { access, mkdir, rename, rm, rmdir, statfs, truncate, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { hostCommands } from '../processes/host-commands.ts';

/** What /proc/mounts calls the directory of all volumes of a platform. */
const volumesMountName = 'paas-volumes';

/** A file in the directory of all volumes of a platform while that is mounted. */
export const volumesMarker = 'mounted';

/** Where the volumes of a platform are mounted. */
export function volumesRoot(dataDir: string): string {
  return `${dataDir}/volumes`;
}

/** Where any platform of this machine has volumes now. @param mounts text of /proc/mounts */
export function findVolumeRoots(mounts: string): readonly string[] {
  return mounts
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([name]) => name === volumesMountName)
    .map(([, path = '']) =>
      path.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    );
}

/** A file system of a fixed size, in a file of the data directory. */
export interface Volume {
  /** Absolute path at which it is mounted. Its top directory belongs to this process's user. */
  readonly path: string;
  /** Of its bytes or of its files, whichever is the larger share: from 0 to 1. */
  readUsedShare(): Promise<number>;
  /** Of its blocks. */
  readUsedBytes(): Promise<number>;
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
  const root = volumesRoot(dataDir);
  await unmountAll([root]).catch(() => undefined); // usually there is none
  await rm(templateDirectory(dataDir), { recursive: true, force: true });
  const volumes = createVolumes(root, templateDirectory(dataDir));
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

/** Empty file systems of this run of the platform, of which new volumes are copies. */
const templateDirectory = (dataDir: string): string => `${dataDir}/volume-templates`;

function createVolumes(root: string, templates: string): Omit<Volumes, 'problem'> {
  /** The parent of all mounts: unmounting it unmounts all. Mounted with the first volume. */
  let parent: Promise<void> | undefined;
  let mounted = 0;
  /** Unmounts that are not done, by file. */
  const pending = new Map<string, Promise<void>>();
  /** Paths of the unmounts that have not begun. */
  let leaving: string[] = [];
  let unmounting: Promise<void> | undefined;
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
    await hostCommands.run('mount', ['-n', '-t', 'tmpfs', '-o', options, volumesMountName, root]);
    await writeFile(`${root}/${volumesMarker}`, '');
  }

  async function enter(): Promise<void> {
    mounted += 1;
    try {
      await inTurn(() => (parent ??= ensureParent()));
    } catch (error) {
      parent = undefined;
      await leave([]);
      throw error;
    }
  }

  /** Ends one mount that has a path or, without, one that failed. Unmounting the parent unmounts all. */
  async function leave(paths: readonly string[]): Promise<void> {
    mounted -= Math.max(1, paths.length);
    await inTurn(async () => {
      if (mounted > 0) {
        if (paths.length === 0) return;
        await unmountAll(paths);
        await Promise.all(paths.map((path) => rmdir(path)));
      } else if (parent !== undefined) {
        parent = undefined;
        await unmountAll([root]);
      }
    }).catch(() => undefined); // `close` unmounts what is left
  }

  /** What ends at the same time, such as the volumes of one build, is unmounted by one command. */
  function leaveSoon(path: string): Promise<void> {
    leaving.push(path);
    unmounting ??= nextTurn().then(async () => {
      const paths = leaving;
      leaving = [];
      unmounting = undefined;
      await leave(paths);
    });
    return unmounting;
  }

  return {
    async mount(spec) {
      await pending.get(spec.file);
      await enter();
      const path = `${root}/${randomUUID()}`;
      try {
        await mkdir(path, { mode: 0o711 });
        if (!(await exists(spec.file))) await create(spec, templates);
        await mountFile(spec, path).catch(async () => {
          await rm(spec.file, { force: true });
          await create(spec, undefined);
          await mountFile(spec, path);
        });
      } catch (error) {
        await leave([]);
        throw error;
      }
      return {
        path,
        readUsedShare: () => readUsedShare(path),
        readUsedBytes: () => readUsedBytes(path),
        unmount() {
          const done = leaveSoon(path).finally(() => pending.delete(spec.file));
          pending.set(spec.file, done);
        },
      };
    },
    async close() {
      await Promise.all(pending.values());
      await inTurn(async () => {
        if (parent === undefined) return;
        parent = undefined;
        await unmountAll([root]);
      });
      await rmdir(root).catch(() => undefined);
    },
  };
}

/** @param templates where there may be an empty file system of this kind; undefined: it is made anew */
async function create(spec: VolumeSpec, templates: string | undefined): Promise<void> {
  const { file, bytes, lasting } = spec;
  await mkdir(dirname(file), { recursive: true, mode: 0o711 });
  const unfinished = `${file}.new`;
  // A copy takes a tenth of the time. Volumes that last are made once.
  if (lasting || templates === undefined) await format(unfinished, spec);
  else {
    const template = `${templates}/${bytes}`;
    if (!(await exists(template))) {
      await mkdir(templates, { recursive: true, mode: 0o700 });
      const made = `${template}.${randomUUID()}`;
      await format(made, spec);
      await rename(made, template);
    }
    await hostCommands.run('cp', ['--sparse=always', '--reflink=auto', '--', template, unfinished]);
  }
  await rename(unfinished, file);
}

async function format(file: string, { bytes, lasting }: VolumeSpec): Promise<void> {
  await writeFile(file, '', { mode: 0o600 });
  await truncate(file, bytes);
  // The number of files is limited by the file system: one for each 16 KiB.
  const options = ['-q', '-F', '-m', '0', '-i', '16384', '-E', 'lazy_itable_init=1,lazy_journal_init=1,nodiscard'];
  await hostCommands.run('mkfs.ext4', [...options, ...(lasting ? [] : ['-O', '^has_journal']), file]);
}

async function mountFile({ file, lasting }: VolumeSpec, path: string): Promise<void> {
  const options = ['loop', 'nosuid', 'nodev', 'noatime', ...(lasting ? ['discard'] : ['nobarrier'])];
  await hostCommands.run('mount', ['-n', '-t', 'ext4', '-o', options.join(','), file, path]);
}

/** Mounts that are in use go once they are not. */
async function unmountAll(paths: readonly string[]): Promise<void> {
  await hostCommands.run('umount', ['-n', '-l', ...paths]);
}

async function readUsedShare(path: string): Promise<number> {
  const { blocks, bfree, files, ffree } = await statfs(path);
  return Math.max(1 - bfree / blocks, 1 - ffree / files);
}

async function readUsedBytes(path: string): Promise<number> {
  const { blocks, bfree, bsize } = await statfs(path);
  return (blocks - bfree) * bsize;
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
