import { createHash } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { ifMissing } from '#shared/files/if-missing.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import { findVolumeRoots, volumesRoot } from '../disk/volumes.ts';
import type { AppNetwork, Networks } from '../network/networks.ts';
import { readProcessUsage } from '../processes/process-usage.ts';
import { readNameFiles } from './name-files.ts';
import { planSandbox, type SandboxHost, type SandboxSpec } from './sandbox.ts';
import { type ControlGroups, openControlGroups } from './sandbox-cgroup.ts';
import { readSandboxHost } from './sandbox-host.ts';
import type { SandboxLayer } from './sandbox-layer.ts';
import type { SandboxedProcess, SandboxRecord, SandboxStreams } from './sandbox-process.ts';
import { endSandbox, isSandboxAlive, SandboxStartError, signalSandbox, spawnSandboxed } from './sandbox-process.ts';
import { seccompFilter } from './sandbox-seccomp.ts';
import { openSandboxUids } from './sandbox-uids.ts';
import { openUserNamespace } from './user-namespace.ts';
import { openUserRanges, type UserRange } from './user-ranges.ts';

/** Sandboxes on this machine: starting them, and finding them again by their records. */
export interface Sandbox {
  /** Why there is no sandbox on this machine, and the command that fixes it; undefined when there is one. */
  readonly problem: string | undefined;
  /** Whether a spec may have a `layer`. False on kernels that do not let ordinary users mount overlays. */
  readonly layers: boolean;
  /** What enforces the limits on memory and processes. */
  readonly limitedBy: SandboxHost['limitedBy'];
  /**
   * The user that code runs as; files that it is to write must belong to it. The own uid when this process is not root.
   * @param owner an app's id or an add-on's name
   */
  ensureUid(owner: string): Promise<number>;
  /**
   * The users of an owner's containers, the first of which is the user that its other code runs as.
   * @throws SandboxStartError where this process is not root: only root can make them
   */
  ensureUsers(owner: string): Promise<UserRange>;
  /** The network of an owner's code, created if missing. Undefined where all code shares the host's network. */
  ensureNetwork(owner: string): Promise<AppNetwork | undefined>;
  /** @throws SandboxStartError when it cannot be set up (`problem`, or a mount that is not there) */
  spawn(spec: SandboxSpec, output: SandboxStreams): Promise<SandboxedProcess>;
  isAlive(record: SandboxRecord): Promise<boolean>;
  /** Sends the signal to every process inside. */
  signal(record: SandboxRecord, signal: NodeJS.Signals): Promise<void>;
  /** Kills everything inside, waits for it and deletes its control groups. To be called for each sandbox, also one found again. */
  end(record: SandboxRecord): Promise<void>;
  /** Undefined when it has no processes any more. */
  readUsage(record: SandboxRecord): Promise<SandboxUsage | undefined>;
  /** Whether the kernel killed something inside because memory ran out. Not known any more after `end`. */
  ranOutOfMemory(record: SandboxRecord): Promise<boolean>;
}

/** What all processes of a sandbox use. */
export interface SandboxUsage {
  /** Processor time of all its processes since it was started, ended ones included. */
  cpuSeconds: number;
  /** Resident, without cached files that the kernel would drop first. */
  memoryBytes: number;
}

export interface SandboxOptions {
  /** Absolute. The uids of owners are recorded in it. */
  readonly dataDir: string;
  /** The PATH to find bwrap on. */
  readonly path: string;
  /** Undefined: code shares the host's network. */
  readonly networks?: Pick<Networks, 'ensureNetwork'> | undefined;
}

/** Finds out what this machine can do, and removes control groups that a crash has left. */
export async function openSandbox({ dataDir, path, networks }: SandboxOptions): Promise<Sandbox> {
  const groups = await openControlGroups(`paas-${createHash('sha256').update(dataDir).digest('hex').slice(0, 8)}`);
  const layerDirectory = `${dataDir}/layer`;
  await mkdir(layerDirectory, { recursive: true, mode: 0o755 });
  const host = await readSandboxHost(path, groups.kind, layerDirectory);
  const uids = openSandboxUids(`${dataDir}/uids`);
  const ranges = openUserRanges(`${dataDir}/uid-ranges`);
  const start = (spec: SandboxSpec, output: SandboxStreams): Promise<SandboxedProcess> =>
    startIn({ host, groups, ownVolumes: volumesRoot(dataDir) }, spec, output);
  await groups.sweep();
  const layerProblem = host === undefined ? missing : await probeSandbox(start, { source: '/usr', target: '/app', bytes: 65536 });
  const problem = host === undefined || layerProblem === undefined ? layerProblem : await probeSandbox(start);
  await groups.deleteGroups(probeId);
  return {
    problem,
    layers: layerProblem === undefined,
    limitedBy: groups.kind,
    ensureUid: async (owner) => (host === undefined || host.root ? uids.ensureUid(owner) : host.uid),
    async ensureUsers(owner) {
      if (host?.root === false) throw new SandboxStartError('Container images need a platform that runs as root.');
      return ranges.ensureRange(owner, await uids.ensureUid(owner));
    },
    ensureNetwork: async (owner) => networks?.ensureNetwork(owner),
    async spawn(spec, output) {
      if (problem !== undefined) throw new SandboxStartError(problem);
      return start(spec, output);
    },
    isAlive: isSandboxAlive,
    async signal(record, signal) {
      if (host !== undefined) await signalSandbox(record, signal, host.bwrap);
    },
    async end(record) {
      await endSandbox(record);
      await groups.deleteGroups(record.id);
    },
    async readUsage(record) {
      if (!(await isSandboxAlive(record))) return undefined;
      const [{ cpuSeconds, residentBytes }, groupBytes] = await Promise.all([
        readProcessUsage(record.init.pid),
        groups.readMemory(record.id),
      ]);
      return { cpuSeconds, memoryBytes: groupBytes ?? residentBytes };
    },
    ranOutOfMemory: async (record) => (await groups.readOomKills(record.id)) > 0,
  };
}

const missing = 'bubblewrap, which confines builds and apps, is not installed. Install it: apt-get install -y bubblewrap';

interface StartPlace {
  readonly host: SandboxHost | undefined;
  readonly groups: ControlGroups;
  /** Known without a look: they may be mounted after it. */
  readonly ownVolumes: string;
}

async function startIn(
  { host, groups, ownVolumes }: StartPlace,
  spec: SandboxSpec,
  output: SandboxStreams,
): Promise<SandboxedProcess> {
  if (host === undefined) throw new SandboxStartError(missing);
  const [procs, names, mounts] = await Promise.all([
    groups.ensureGroups(spec.id, spec.limits),
    readNameFiles(spec.network === undefined),
    spec.layer === undefined ? '' : readFile('/proc/mounts', 'latin1').catch(ifMissing('')),
  ]);
  const volumeRoots = [...new Set([ownVolumes, ...findVolumeRoots(mounts)])].filter((path) => !path.includes('\n'));
  const namespace = spec.container && (await openUserNamespace(spec.container.users));
  try {
    const container = namespace && { namespace: { fd: namespace.fd }, filter: seccompFilter(process.arch, 'container-tools') };
    const plan = planSandbox(spec, host, { groups: procs, filter: seccompFilter(), names, volumeRoots, container });
    return await spawnSandboxed(spec.id, plan, output);
  } catch (error) {
    await groups.deleteGroups(spec.id);
    throw error;
  } finally {
    await namespace?.close();
  }
}

const probeId = `probe-${process.pid}`;

/** Runs a program that does nothing in a sandbox. @returns the problem and what to do; undefined when there is none */
async function probeSandbox(start: Sandbox['spawn'], layer?: SandboxLayer): Promise<string | undefined> {
  try {
    const probe = await start(
      {
        id: probeId,
        uid: 0x7000_0000 - 1,
        argv: ['true'],
        env: { PATH: '/usr/bin:/bin' },
        cwd: '/',
        mounts: [],
        ...omitUndefined({ layer }),
        tmp: { bytes: 1024 * 1024 },
        limits: { memoryBytes: 256 * 1024 * 1024, processes: 64, fileBytes: 1024 * 1024 },
        dieWithParent: true,
      },
      { stdout: 'pipe', stderr: 'pipe' },
    );
    let output = '';
    for await (const chunk of probe.stderr ?? []) output += String(chunk);
    const { code } = await probe.exited;
    return code === 0 ? undefined : `The sandbox does not work here (exit ${code}): ${output.trim()}. ${namespaceHint}`;
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}. ${namespaceHint}`;
  }
}

const namespaceHint =
  'An ordinary user needs user namespaces: sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0 (as root), or run the platform as root.';
