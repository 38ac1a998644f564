/**
 * The sandbox of tenants' code, for builds and app instances alike: bubblewrap with its own mounts, pids, IPC and host name, in
 * the app's network namespace. As root the code runs under the app's own uid without any capability; as an ordinary user it runs
 * in a user namespace. This file is the pure part: from the specification to the command line.
 */

import type { NameFiles } from './name-files.ts';
import { becomeRootInside, planContainer, type SandboxContainer, toolCapabilities } from './sandbox-container.ts';
import { launchScript } from './sandbox-launch.ts';
import { type LayerHost, layerDescriptor, planLayer, type SandboxLayer } from './sandbox-layer.ts';

/** A file or directory of the host that is seen inside; read-only unless `writable`. */
export interface SandboxBind {
  /** Absolute host path of a file or directory. */
  readonly source: string;
  /** Absolute path inside. */
  readonly target: string;
  readonly writable?: boolean;
}

/** A symlink that is only seen inside. */
export interface SandboxLink {
  readonly target: string;
  readonly linkTo: string;
}

/** Something that is seen inside. */
export type SandboxMount = SandboxBind | SandboxLink;

/** Limits of everything inside together. */
export interface SandboxLimits {
  readonly memoryBytes: number;
  readonly processes: number;
  /** Largest file that may be written. */
  readonly fileBytes: number;
}

/** What is to run, and what it may see and use. */
export interface SandboxSpec {
  /** Unique among the sandboxes that live at one time, `^[a-zA-Z0-9._-]+$`: names the control group. */
  readonly id: string;
  /** The user that the code runs as, from `SandboxUids`; ignored when the platform is not root. */
  readonly uid: number;
  /** argv[0] is looked up on PATH of `env`. */
  readonly argv: readonly string[];
  /** The whole environment of the code. Secret: never in an argument, and never passed to a process with privileges. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** In addition to the host's /usr and a few files of /etc. Later ones cover earlier ones. */
  readonly mounts: readonly SandboxMount[];
  /** A writable directory; the mounts cover it. */
  readonly layer?: SandboxLayer;
  /** /tmp: in memory, which counts against `memoryBytes`, or a directory of the host. */
  readonly tmp: { readonly bytes: number } | { readonly directory: string };
  readonly limits: SandboxLimits;
  /** Name of a network namespace in /run/netns, from `Sandbox.ensureNetwork`. Undefined: the host's network. */
  readonly network?: string | undefined;
  /** Users of its own for the code, and the files of an image. Only where the platform is root. */
  readonly container?: SandboxContainer;
  /** True: everything in it ends with this process (builds). False: it continues to run (app instances). */
  readonly dieWithParent: boolean;
}

/** The properties of the host that a plan depends on, from `readSandboxHost`. */
export interface SandboxHost extends LayerHost {
  readonly uid: number;
  readonly gid: number;
  readonly bwrap: string;
  /** /bin, /lib …: symlinks to create inside, or directories to mount. */
  readonly systemDirectories: readonly { readonly path: string; readonly linkTo?: string }[];
  /** Files and directories of the host that are covered by empty ones. */
  readonly hidden: readonly { readonly path: string; readonly isDirectory: boolean }[];
  /** Files and directories of /etc that are seen inside; `source` is the target of a symlink. */
  readonly etc: readonly SandboxBind[];
  /** What enforces the limits on memory and processes; 'rlimit' per process, the others for all of them together. */
  readonly limitedBy: 'cgroup-v1' | 'cgroup-v2' | 'rlimit';
}

/** A file that this process has open. */
export interface OpenFile {
  readonly fd: number;
}

/** The command that starts a sandbox. */
export interface SandboxPlan {
  readonly command: string;
  readonly args: readonly string[];
  /** Environment of bwrap, not of the code inside. */
  readonly env: Readonly<Record<string, string>>;
  /** To pass as file descriptors 3, 4, 5 …, in this order: data to read, or an open file. `undefined`: bwrap writes to this one. */
  readonly descriptors: readonly (string | Uint8Array | OpenFile | undefined)[];
}

/** The descriptor on which bwrap reports the pid of process 1 inside. */
export const infoDescriptor = 4;

/** As much as container engines give. It counts against the memory limit where there are control groups. */
const sharedMemoryBytes = 64 * 1024 * 1024;

const launchPath = '/run/paas/launch';
/** What tenants start is killed before the platform when memory runs out; 0 is the default of other processes, 1000 the highest. */
export const oomScoreAdjustment = 500;
/** What tenants start yields the processor to the platform where there is no control group for that. */
export const niceness = 5;
// Joins the control groups before anything else runs. The arguments up to -- are their procs files.
const joinScript =
  'while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; ' +
  `echo ${oomScoreAdjustment} 2> /dev/null > /proc/self/oom_score_adj; exec "$@"`;

/** What a plan depends on beside the specification and the host. */
export interface SandboxInputs {
  /** Procs files of the sandbox's control groups; empty: limits are set per process. */
  readonly groups: readonly string[];
  /** Filter of system calls. */
  readonly filter: Uint8Array;
  /** For a spec with a `container`: its user namespace, and the filter for the tools that set it up. */
  readonly container?: { readonly namespace: OpenFile; readonly filter: Uint8Array } | undefined;
  readonly names: NameFiles;
  /** Where volumes may be mounted; a sandbox with a layer leaves them. */
  readonly volumeRoots: readonly string[];
}

/** Plans the command line of a sandbox. */
export function planSandbox(
  spec: SandboxSpec,
  host: SandboxHost,
  { groups, filter, names, volumeRoots, container }: SandboxInputs,
): SandboxPlan {
  const uid = host.root ? spec.uid : host.uid;
  const gid = host.root ? spec.uid : host.gid;
  const layer =
    spec.layer === undefined ? undefined : { ...planLayer(spec.layer, uid, host, volumeRoots), target: spec.layer.target };
  const files = [
    { target: '/etc/passwd', text: `root:x:0:0:root:/nonexistent:/usr/sbin/nologin\napp:x:${uid}:${gid}:app:/app:/bin/sh\n` },
    { target: '/etc/group', text: `root:x:0:\napp:x:${gid}:\n` },
    { target: '/etc/hosts', text: names.hosts },
    { target: '/etc/resolv.conf', text: names.resolvers },
    { target: launchPath, text: '' },
  ];
  const firstFile = layer === undefined ? layerDescriptor : layerDescriptor + 1;
  const namespaceDescriptor = firstFile + files.length;
  const program =
    spec.container?.kind === 'image'
      ? planContainer(spec, spec.container, { bwrap: host.bwrap, filter, names, firstDescriptor: namespaceDescriptor + 1 })
      : { argv: spec.argv, env: spec.env, descriptors: [] };
  const inner = [
    ...(spec.container !== undefined ? becomeRootInside : host.root ? dropRights(spec.uid) : []),
    ...processLimits(spec.limits, groups.length > 0),
    '/bin/sh',
    launchPath,
    ...program.argv,
  ];
  const options = [
    '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--hostname', 'app', '--new-session',
    ...(spec.dieWithParent ? ['--die-with-parent'] : []),
    ...(container !== undefined ? ['--userns2', String(namespaceDescriptor), ...keepCapabilities(toolCapabilities)] : host.root ? keepCapabilities(capabilitiesOfSetpriv) : ['--unshare-user', '--disable-userns', '--uid', String(uid), '--gid', String(gid), '--cap-drop', 'ALL']),
    '--clearenv', '--setenv', 'PATH', '/usr/bin:/bin',
    '--ro-bind', '/usr', '/usr',
    ...host.systemDirectories.flatMap(({ path, linkTo }) => (linkTo === undefined ? ['--ro-bind', path, path] : ['--symlink', linkTo, path])),
    ...parentsOf([...host.etc, ...(layer === undefined ? [] : [layer]), ...spec.mounts]).flatMap((directory) => ['--perms', '0755', '--dir', directory]),
    // buildah shows it to the commands that it runs.
    ...(spec.container?.kind === 'tools' ? ['--perms', '0755', '--dir', '/sys'] : []),
    ...host.etc.flatMap(({ source, target }) => ['--ro-bind-try', source, target]),
    '--proc', '/proc', '--dev', '/dev',
    '--size', String(sharedMemoryBytes), '--perms', '1777', '--tmpfs', '/dev/shm', '--remount-ro', '/dev',
    ...host.hidden.flatMap(({ path, isDirectory }) => (isDirectory ? ['--tmpfs', path, '--remount-ro', path] : ['--dev-bind', '/dev/null', path])),
    ...('bytes' in spec.tmp
      ? ['--size', String(spec.tmp.bytes), '--perms', '1777', '--tmpfs', '/tmp']
      : ['--bind', spec.tmp.directory, '/tmp']),
    ...(layer === undefined ? [] : ['--bind', layer.path, layer.target]),
    ...spec.mounts.flatMap((mount) =>
      'linkTo' in mount ? ['--symlink', mount.linkTo, mount.target] : [mount.writable === true ? '--bind' : '--ro-bind', mount.source, mount.target],
    ),
    ...files.flatMap(({ target }, index) => ['--perms', '0444', '--ro-bind-data', String(firstFile + index), target]),
    '--remount-ro', '/',
    '--chdir', spec.container?.kind === 'image' ? '/' : spec.cwd,
    '--seccomp', '5',
    '--info-fd', String(infoDescriptor),
  ]; // biome-ignore format: one option group a line
  const bwrap = [host.bwrap, '--args', '3', '--', ...inner];
  return {
    command: '/bin/sh',
    args: ['-c', joinScript, 'paas-sandbox', ...groups, '--', ...joinNetwork(spec.network), ...(layer?.argv ?? []), ...bwrap],
    env: { PATH: '/usr/bin:/bin' },
    descriptors: [
      // Options are passed by descriptor, so that neither `ps` nor /proc/1/cmdline inside shows the paths of tenants' data.
      options.map((option) => `${option}\0`).join(''),
      undefined,
      container?.filter ?? filter,
      ...(layer === undefined ? [] : [layer.input]),
      ...files.map(({ target, text }) => (target === launchPath ? launchScript(program.env) : text)),
      ...(container === undefined ? [] : [container.namespace, ...program.descriptors]),
    ],
  };
}

function joinNetwork(network: string | undefined): readonly string[] {
  return network === undefined ? [] : ['/usr/bin/nsenter', `--net=/run/netns/${network}`, '--'];
}

/** The parent directories of the targets, outermost first. bwrap itself would create them with access for root only. */
function parentsOf(mounts: readonly { readonly target: string }[]): readonly string[] {
  const parents = mounts.flatMap(({ target }) => {
    const parts = target.split('/').slice(1, -1);
    return parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`);
  });
  return [...new Set(parents)].filter((directory) => directory !== '/usr' && !directory.startsWith('/usr/')).sort();
}

// setpriv needs these to become the app's user, and drops them, too.
const capabilitiesOfSetpriv = ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'];

function keepCapabilities(names: readonly string[]): readonly string[] {
  return ['--cap-drop', 'ALL', ...names.flatMap((name) => ['--cap-add', name])];
}

/** Becomes the app's user, without any capability. */
function dropRights(uid: number): readonly string[] {
  const id = String(uid);
  return [
    '/usr/bin/setpriv', '--reuid', id, '--regid', id, '--clear-groups', '--inh-caps=-all', '--ambient-caps=-all', '--bounding-set=-all',
    '--no-new-privs', '--',
  ]; // biome-ignore format: as typed on a command line
}

// Writable memory that V8 reserves for machine code, and Go for its arenas, before they run any code.
const reservedByRuntimes = 1024 * 1024 * 1024;

function processLimits(limits: SandboxLimits, grouped: boolean): readonly string[] {
  return [
    '/usr/bin/prlimit',
    // 1, not 0: the kernel hands dumps of any size but 1 to a handler that core_pattern names, which runs as root on the host.
    '--core=1',
    `--fsize=${limits.fileBytes}`,
    // Without control groups, limits are per process and per user: coarser, but they still stop a fork bomb. Private writable memory
    // is limited, not address space, of which V8 reserves gigabytes that it never uses.
    ...(grouped ? [] : [`--nproc=${limits.processes}`, `--data=${limits.memoryBytes + reservedByRuntimes}`]),
    '--',
  ];
}
