import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import type { AppNetwork, Networks } from '../network/networks.ts';
import { readProcessUsage } from '../processes/process-usage.ts';
import { planSandbox, type SandboxHost, type SandboxSpec } from './sandbox.ts';
import { type ControlGroups, openControlGroups } from './sandbox-cgroup.ts';
import { readSandboxHost } from './sandbox-host.ts';
import type { SandboxLayer } from './sandbox-layer.ts';
import type { SandboxedProcess, SandboxOutput, SandboxRecord } from './sandbox-process.ts';
import { endSandbox, isSandboxAlive, SandboxStartError, signalSandbox, spawnSandboxed } from './sandbox-process.ts';
import { seccompFilter } from './sandbox-seccomp.ts';
import { openSandboxUids } from './sandbox-uids.ts';

/** Sandboxes on this machine: starting them, and finding them again by their records. */
export interface Sandbox {
  /** Why none can be had here and the command that mends it; undefined when all is well. */
  readonly problem: string | undefined;
  /** Whether a spec may have a `layer`; not so on kernels that give ordinary users no overlays. */
  readonly layers: boolean;
  /** What memory and process limits rest on. */
  readonly limitedBy: SandboxHost['limitedBy'];
  /** Whom the code of an app, or an add-on by its name, runs as; files meant for it to write must be its. Own uid when this process is not root. */
  ensureUid(owner: string): Promise<number>;
  /** The network of an owner's code, created if missing. Undefined where all code shares the host's network. */
  ensureNetwork(owner: string): Promise<AppNetwork | undefined>;
  /** @throws SandboxStartError when it cannot be set up (`problem`, or a mount that is not there) */
  spawn(spec: SandboxSpec, output: { stdout: SandboxOutput; stderr: SandboxOutput }): Promise<SandboxedProcess>;
  isAlive(record: SandboxRecord): Promise<boolean>;
  /** To every process inside. */
  signal(record: SandboxRecord, signal: NodeJS.Signals): Promise<void>;
  /** Kills everything inside, waits for it and frees what the kernel keeps of it. Call it for adopted sandboxes too. */
  end(record: SandboxRecord): Promise<void>;
  /** What its processes use; undefined when there are none any more. */
  readUsage(record: SandboxRecord): Promise<SandboxUsage | undefined>;
  /** True when the kernel killed something inside for want of memory. To be asked before `end`. */
  ranOutOfMemory(record: SandboxRecord): Promise<boolean>;
}

/** What all processes of a sandbox use. */
export interface SandboxUsage {
  /** Processor time of all its processes since it was started, ended ones included. */
  cpuSeconds: number;
  /** Resident, without cached files that the kernel would drop for want of memory. */
  memoryBytes: number;
}

export interface SandboxOptions {
  /** Absolute. Uids are remembered in it. */
  readonly dataDir: string;
  /** The PATH to find bwrap on. */
  readonly path: string;
  /** Undefined: code shares the host's network. */
  readonly networks?: Pick<Networks, 'ensureNetwork'> | undefined;
}

export async function openSandbox({ dataDir, path, networks }: SandboxOptions): Promise<Sandbox> {
  const groups = await openControlGroups(`paas-${createHash('sha256').update(dataDir).digest('hex').slice(0, 8)}`);
  const layerDirectory = `${dataDir}/layer`;
  await mkdir(layerDirectory, { recursive: true, mode: 0o755 });
  const host = await readSandboxHost(path, groups.kind, layerDirectory);
  const uids = openSandboxUids(`${dataDir}/uids`);
  const start = (spec: SandboxSpec, output: { stdout: SandboxOutput; stderr: SandboxOutput }): Promise<SandboxedProcess> =>
    startIn(host, groups, spec, output);
  await groups.sweep();
  const layerProblem = host === undefined ? missing : await probeSandbox(start, { source: '/usr', target: '/app', bytes: 65536 });
  const problem = host === undefined || layerProblem === undefined ? layerProblem : await probeSandbox(start);
  await groups.deleteGroups(probeId);
  return {
    problem,
    layers: layerProblem === undefined,
    limitedBy: groups.kind,
    ensureUid: async (owner) => (host === undefined || host.root ? uids.ensureUid(owner) : host.uid),
    ensureNetwork: async (owner) => networks?.ensureNetwork(owner),
    async spawn(spec, output) {
      if (problem !== undefined) throw new SandboxStartError(problem);
      return start(spec, output);
    },
    isAlive: isSandboxAlive,
    signal: signalSandbox,
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

async function startIn(
  host: SandboxHost | undefined,
  groups: ControlGroups,
  spec: SandboxSpec,
  output: { stdout: SandboxOutput; stderr: SandboxOutput },
): Promise<SandboxedProcess> {
  if (host === undefined) throw new SandboxStartError(missing);
  const procs = await groups.ensureGroups(spec.id, spec.limits);
  try {
    return await spawnSandboxed(spec.id, planSandbox(spec, host, procs, seccompFilter()), output);
  } catch (error) {
    await groups.deleteGroups(spec.id);
    throw error;
  }
}

const probeId = `probe-${process.pid}`;

/** Runs a program that does nothing in a real sandbox. What hinders it, and what to do; undefined when it went well. */
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
        ...(layer === undefined ? {} : { layer }),
        tmp: { bytes: 1024 * 1024 },
        limits: { memoryBytes: 256 * 1024 * 1024, processes: 64, fileBytes: 1024 * 1024 },
        dieWithParent: true,
      },
      { stdout: 'pipe', stderr: 'pipe' },
    );
    let said = '';
    for await (const chunk of probe.stderr ?? []) said += String(chunk);
    const { code } = await probe.exited;
    return code === 0 ? undefined : `The sandbox does not work here (exit ${code}): ${said.trim()}. ${namespaceHint}`;
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}. ${namespaceHint}`;
  }
}

const namespaceHint =
  'An ordinary user needs user namespaces: sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0 (as root), or run the platform as root.';
