import { access, constants, mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import type { SandboxHost, SandboxLimits } from './sandbox.ts';

/** Limits on memory and processes of whole sandboxes by control groups, where this process may create some. */
export interface ControlGroups {
  readonly kind: SandboxHost['limitedBy'];
  /** Creates the groups of a sandbox, or reuses existing ones. @returns their `cgroup.procs` files; a process joins by writing its pid */
  ensureGroups(id: string, limits: SandboxLimits): Promise<readonly string[]>;
  /** Bytes in use, without cached files that the kernel would drop first. Undefined when it is not known. */
  readMemory(id: string): Promise<number | undefined>;
  /** Number of processes that the kernel killed because memory ran out. Zero when it is not known. */
  readOomKills(id: string): Promise<number>;
  /** False when there are still processes in them. */
  deleteGroups(id: string): Promise<boolean>;
  /** Deletes groups without processes that a crash has left. */
  sweep(): Promise<void>;
}

/** No control groups: limits are set per process. */
const perProcess: ControlGroups = {
  kind: 'rlimit',
  ensureGroups: async () => [],
  readMemory: async () => undefined,
  readOomKills: async () => 0,
  deleteGroups: async () => true,
  sweep: async () => undefined,
};

interface Layout {
  readonly kind: 'cgroup-v1' | 'cgroup-v2';
  /** The directories in which memory groups and pids groups are created. The same on v2. */
  readonly memory: string;
  readonly pids: string;
  /** The group in which the sandboxes share the processor; undefined where there is none. The same on v2. */
  readonly cpu: string | undefined;
}

/** Of a process of the platform: 1024 in version 1, 100 of its group in version 2. */
const allShares = 1024;
const allWeight = 50;

/** @param prefix distinguishes the groups of this platform from those of another one on the same machine */
export async function openControlGroups(prefix: string, mountPoint = '/sys/fs/cgroup'): Promise<ControlGroups> {
  const layout = (await findV1(mountPoint)) ?? (await findV2(mountPoint));
  if (layout === undefined) return perProcess;
  const groups = controlGroups(layout, prefix);
  try {
    await groups.ensureGroups('probe', { memoryBytes: 64 * 1024 * 1024, processes: 16, fileBytes: 0 });
    await groups.deleteGroups('probe');
    return groups;
  } catch {
    return perProcess; // visible but not writable, as in most containers
  }
}

/** How much the buffers of TCP connections may take, compared with the limit on all other memory. */
const connectionShare = 0.25;

function controlGroups(layout: Layout, prefix: string): ControlGroups {
  const parents = [...new Set([layout.memory, layout.pids, layout.cpu])].filter((parent) => parent !== undefined);
  const directories = (id: string): readonly string[] => parents.map((parent) => `${parent}/${prefix}-${id}`);
  return {
    kind: layout.kind,
    async ensureGroups(id, limits) {
      for (const directory of directories(id)) await mkdir(directory, { recursive: true });
      const memory = `${layout.memory}/${prefix}-${id}`;
      await writeFile(`${layout.pids}/${prefix}-${id}/pids.max`, String(limits.processes));
      if (layout.kind === 'cgroup-v1') {
        await writeFile(`${memory}/memory.limit_in_bytes`, String(limits.memoryBytes));
        await writeFile(`${memory}/memory.memsw.limit_in_bytes`, String(limits.memoryBytes)).catch(() => undefined); // no swap accounting
        // Version 1 counts the buffers of TCP connections only where they have a limit, and apart from all other memory.
        const buffers = String(Math.floor(limits.memoryBytes * connectionShare));
        await writeFile(`${memory}/memory.kmem.tcp.limit_in_bytes`, buffers).catch(() => undefined); // no such accounting
      } else {
        await writeFile(`${memory}/memory.max`, String(limits.memoryBytes));
        await writeFile(`${memory}/memory.swap.max`, '0').catch(() => undefined); // no swap accounting
      }
      return directories(id).map((directory) => `${directory}/cgroup.procs`);
    },
    async readMemory(id) {
      const [usageFile, idleField] =
        layout.kind === 'cgroup-v1' ? ['memory.usage_in_bytes', 'total_inactive_file'] : ['memory.current', 'inactive_file'];
      const [usage, stat] = await Promise.all(
        [usageFile, 'memory.stat'].map((file) => readFile(`${layout.memory}/${prefix}-${id}/${file}`, 'utf8').catch(() => '')),
      );
      const idle = new RegExp(`^${idleField} (\\d+)$`, 'm').exec(stat ?? '')?.[1];
      return usage === undefined || usage === '' || idle === undefined ? undefined : Math.max(0, Number(usage) - Number(idle));
    },
    async readOomKills(id) {
      const file = layout.kind === 'cgroup-v1' ? 'memory.oom_control' : 'memory.events';
      const text = await readFile(`${layout.memory}/${prefix}-${id}/${file}`, 'utf8').catch(() => '');
      return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
    },
    async deleteGroups(id) {
      const gone = await Promise.all(directories(id).map(removeEmptiedGroup));
      return gone.every(Boolean);
    },
    async sweep() {
      for (const parent of parents) {
        const names = await readdir(parent);
        await Promise.all(names.filter((name) => name.startsWith(`${prefix}-`)).map((name) => removeGroup(`${parent}/${name}`)));
      }
    },
  };
}

/** Retries, since processes that were just killed leave their groups a moment later. */
async function removeEmptiedGroup(directory: string): Promise<boolean> {
  for (let wait = 1; wait <= 512; wait *= 2) {
    if (await removeGroup(directory)) return true;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
  return removeGroup(directory);
}

async function removeGroup(directory: string): Promise<boolean> {
  return rmdir(directory).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  );
}

/** Version 1: one hierarchy per controller. Groups are created below this process's own group, so that its limits apply to them. */
async function findV1(mountPoint: string): Promise<Layout | undefined> {
  const own = await readFile('/proc/self/cgroup', 'utf8').catch(() => '');
  const directoryOf = async (controller: string): Promise<string | undefined> => {
    const line = own.split('\n').find((candidate) => candidate.split(':')[1]?.split(',').includes(controller));
    const path = line?.split(':').slice(2).join(':');
    if (path === undefined) return undefined;
    // In a container the path is that of the host, but the mount has this process's group as its root.
    for (const directory of [`${mountPoint}/${controller}${path === '/' ? '' : path}`, `${mountPoint}/${controller}`]) {
      if (await isWritable(directory)) return directory;
    }
    return undefined;
  };
  const [memory, pids] = [await directoryOf('memory'), await directoryOf('pids')];
  if (memory === undefined || pids === undefined) return undefined;
  return { kind: 'cgroup-v1', memory, pids, cpu: await makeCpuGroup(await directoryOf('cpu'), 'cpu.shares', allShares) };
}

/**
 * The group of all sandboxes. Together they get as much as one busy process of the platform, when that needs the processor, and among
 * themselves they share it evenly.
 */
async function makeCpuGroup(parent: string | undefined, file: string, weight: number): Promise<string | undefined> {
  if (parent === undefined) return undefined;
  const group = `${parent}/paas`;
  try {
    await mkdir(group, { recursive: true });
    await writeFile(`${group}/${file}`, String(weight));
    return group;
  } catch {
    return undefined;
  }
}

/**
 * Version 2: a group with processes may not delegate controllers, so this process's own group cannot be the parent. A group at the top
 * can, if the top is writable (root on the machine itself, or a delegated tree).
 */
async function findV2(mountPoint: string): Promise<Layout | undefined> {
  const offered = await readFile(`${mountPoint}/cgroup.controllers`, 'utf8').catch(() => '');
  if (!offered.includes('memory') || !offered.includes('pids') || !(await isWritable(mountPoint))) return undefined;
  const parent = `${mountPoint}/paas`;
  try {
    await writeFile(`${mountPoint}/cgroup.subtree_control`, '+memory +pids');
    await mkdir(parent, { recursive: true });
    await writeFile(`${parent}/cgroup.subtree_control`, '+memory +pids');
  } catch {
    return undefined;
  }
  // Without this controller sandboxes only have a lower priority.
  const cpu = await passOnCpu([mountPoint, parent]).then(
    () => makeCpuGroup(mountPoint, 'cpu.weight', allWeight),
    () => undefined,
  );
  return { kind: 'cgroup-v2', memory: parent, pids: parent, cpu };
}

async function passOnCpu(groups: readonly string[]): Promise<void> {
  for (const group of groups) await writeFile(`${group}/cgroup.subtree_control`, '+cpu');
}

async function isWritable(directory: string): Promise<boolean> {
  return Promise.all([access(directory, constants.W_OK), readdir(directory)]).then(
    () => true,
    () => false,
  );
}
