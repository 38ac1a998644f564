import { readFile } from 'node:fs/promises';
import { byClient, byOperator, inApp, inBuild, nothingReached, type Probe } from '../probe.ts';

type Call = readonly [name: string, ...args: (number | string)[]];

const everyFlag = { newUser: 0x1000_0000, newMounts: 0x2_0000, newNetwork: 0x4000_0000, newPids: 0x2000_0000 } as const;

/** Arguments that do nothing where the call is allowed: addresses that nothing is at, descriptors that are not open. */
const calls = {
  namespaces: [
    ['unshare', everyFlag.newUser],
    ['unshare', everyFlag.newMounts],
    ['unshare', everyFlag.newNetwork],
    ['unshare', everyFlag.newPids],
    ['setns', -1, 0],
    ['clone3', 0, 0],
  ],
  mounts: [
    ['mount', 0, 0, 0, 0, 0],
    ['umount2', '/missing', 0],
    ['pivot_root', '/missing', '/missing'],
    ['move_mount', -1, 0, -1, 0, 0],
    ['open_tree', -100, '/', 1],
    ['fsopen', 0, 0],
    ['fsconfig', -1, 0, 0, 0, 0],
    ['fsmount', -1, 0, 0],
    ['fspick', -100, '/missing', 0],
    ['mount_setattr', -1, 0, 0, 0, 0],
    ['chroot', '/'],
  ],
  keyrings: [
    ['add_key', 'user', 'probe', 0, 0, -4],
    ['request_key', 'user', 'probe', 0, 0],
    ['keyctl', 0, -4, 0],
  ],
  tracing: [
    ['bpf', 0, 0, 0],
    ['perf_event_open', 0, 0, -1, -1, 0],
    ['userfaultfd', 0],
    ['kcmp', 1, 1, 0, 0, 0],
    ['syslog', 3, 0, 0],
    ['fanotify_init', 0, 0],
  ],
  rings: [['io_uring_setup', 1, 0]],
  newest: [
    ['open_tree_attr', -1, '/missing', 0, 0, 0],
    ['file_getattr', -1, '/missing', 0, 0, 0],
    ['file_setattr', -1, '/missing', 0, 0, 0],
  ],
  modules: [
    ['init_module', 0, 0, 0],
    ['finit_module', -1, 0, 0],
    ['delete_module', '', 0],
    ['kexec_load', 0, 0, 0, 0],
  ],
  machine: [
    ['acct', '/missing'],
    ['swapon', '/missing', 0],
    ['quotactl', 0x8000_0200, '/missing', 0, 0],
    ['reboot', 0, 0, 0, 0],
    ['settimeofday', 0, 0],
    ['sethostname', 'probe', 5],
    ['open_by_handle_at', -1, 0, 0],
    ['vhangup'],
  ],
} as const satisfies Record<string, readonly Call[]>;

interface CallProbe {
  readonly name: string;
  readonly gain: string;
  readonly tried: readonly Call[];
  readonly quick?: boolean;
  /** What the operator may call without harm; none where root's calls would change the machine. */
  readonly control?: readonly Call[];
}

function callProbe({ name, gain, tried, quick, control }: CallProbe): Probe {
  return {
    name,
    family: 'kernel',
    gain,
    ...(quick === undefined ? {} : { quick }),
    attack: inApp('callKernel', { calls: tried }),
    judge: nothingReached,
    ...(control === undefined ? {} : { control: byOperator('callKernel', { calls: control }) }),
  };
}

const settings = [
  '/proc/sys/kernel/core_pattern',
  '/proc/sys/kernel/modprobe',
  '/proc/sys/vm/overcommit_memory',
  '/proc/sys/net/ipv4/ip_forward',
  '/proc/sys/fs/file-max',
  '/proc/sysrq-trigger',
  '/proc/1/oom_score_adj',
  '/proc/kcore',
  '/proc/acpi',
  '/sys/kernel/uevent_helper',
  '/sys/fs/cgroup/memory/memory.limit_in_bytes',
  '/sys/kernel/mm/transparent_hugepage/enabled',
];

export const kernelProbes: readonly Probe[] = [
  callProbe({
    name: 'makes and enters no namespaces',
    gain: 'root of its own, with which most holes of the kernel begin',
    tried: calls.namespaces,
    quick: true,
    control: [['unshare', everyFlag.newMounts]],
  }),
  callProbe({
    name: 'mounts nothing',
    gain: "the host's disks, and files where the platform looks for its own",
    tried: calls.mounts,
    quick: true,
    control: [['mount', 0, 0, 0, 0, 0]],
  }),
  callProbe({
    name: 'has no keyrings',
    gain: "others' keys, and memory of the kernel that nobody counts",
    tried: calls.keyrings,
    control: calls.keyrings,
  }),
  callProbe({
    name: 'neither traces nor programs the kernel',
    gain: 'memory of the kernel, and a way to win races in it',
    tried: calls.tracing,
    quick: true,
    control: [
      ['bpf', 0, 0, 0],
      ['userfaultfd', 0],
    ],
  }),
  callProbe({
    name: 'has no queues for system calls',
    gain: 'system calls that no filter sees',
    tried: calls.rings,
    control: calls.rings,
  }),
  callProbe({
    name: 'has no system calls that are newer than the filter',
    gain: 'system calls that nobody has looked at',
    tried: calls.newest,
    quick: true,
  }),
  callProbe({ name: 'loads no kernel modules', gain: 'the machine', tried: calls.modules, quick: true }),
  callProbe({
    name: 'changes neither clock, name nor swap of the machine',
    gain: 'the machine',
    tried: calls.machine,
    control: [['settimeofday', 0, 0]],
  }),
  {
    name: 'opens no devices',
    family: 'kernel',
    gain: 'disks, memory, virtual machines and tunnels of the host',
    quick: true,
    attack: inApp('openDevices', { beside: [] }),
    judge: nothingReached,
    control: byOperator('openDevices', { beside: [] }),
  },
  {
    name: 'changes no settings of the kernel',
    family: 'kernel',
    gain: 'a program that root runs, the memory of the machine',
    quick: true,
    attack: inApp('openSettings', { paths: settings }),
    judge: nothingReached,
    control: byOperator('openSettings', { paths: ['/proc/sys/kernel/core_pattern'] }),
  },
  {
    name: 'changes no settings of the kernel in a build',
    family: 'kernel',
    gain: 'a program that root runs, the memory of the machine',
    attack: inBuild('openSettings', { paths: settings }),
    judge: nothingReached,
  },
  {
    name: 'opens no devices in a build',
    family: 'kernel',
    gain: 'disks, memory, virtual machines and tunnels of the host',
    attack: inBuild('openDevices', { beside: [] }),
    judge: nothingReached,
  },
  {
    name: 'makes no namespaces in a build',
    family: 'kernel',
    gain: 'root of its own, with which most holes of the kernel begin',
    attack: inBuild('callKernel', { calls: [...calls.namespaces, ...calls.mounts, ...calls.tracing, ...calls.rings] }),
    judge: nothingReached,
  },
  {
    name: 'keeps no rights that the kernel would check',
    family: 'kernel',
    gain: 'what root may do',
    quick: true,
    attack: (attacker) =>
      byClient(async () => {
        const claim = (await attacker.attempt({ name: 'readFiles', args: { paths: ['/proc/self/status'] } })) as Record<
          string,
          string
        >;
        return claim['/proc/self/status'];
      }),
    judge: rightsKept,
    control: byClient(() => readFile('/proc/self/status', 'utf8')),
  },
];

function rightsKept(status: unknown): string | undefined {
  const text = String(status);
  const kept = [...text.matchAll(/^(Cap\w+):\s+(?!0+$)[0-9a-f]+$/gm)].map(([line]) => line);
  if (!/^NoNewPrivs:\s+1$/m.test(text)) kept.push('set-user-id programs');
  if (!/^Seccomp:\s+2$/m.test(text)) kept.push('all system calls');
  if (/^Uid:\s+0\s/m.test(text) || !/^Groups:\s*$/m.test(text)) kept.push("root's user or groups");
  return kept.length === 0 ? undefined : kept.join(', ');
}
