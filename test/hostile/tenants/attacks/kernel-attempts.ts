import { closeSync, openSync, readdirSync, writeFileSync } from 'node:fs';
import { systemCall } from './system-call.ts';

/** Call numbers in unistd.h, by processor architecture. */
const numbers: Readonly<Record<string, { x64: number; arm64: number }>> = {
  mount: { x64: 165, arm64: 40 },
  umount2: { x64: 166, arm64: 39 },
  pivot_root: { x64: 155, arm64: 41 },
  chroot: { x64: 161, arm64: 51 },
  move_mount: { x64: 429, arm64: 429 },
  open_tree: { x64: 428, arm64: 428 },
  fsopen: { x64: 430, arm64: 430 },
  fsconfig: { x64: 431, arm64: 431 },
  fsmount: { x64: 432, arm64: 432 },
  fspick: { x64: 433, arm64: 433 },
  mount_setattr: { x64: 442, arm64: 442 },
  setns: { x64: 308, arm64: 268 },
  unshare: { x64: 272, arm64: 97 },
  clone: { x64: 56, arm64: 220 },
  clone3: { x64: 435, arm64: 435 },
  add_key: { x64: 248, arm64: 217 },
  request_key: { x64: 249, arm64: 218 },
  keyctl: { x64: 250, arm64: 219 },
  bpf: { x64: 321, arm64: 280 },
  perf_event_open: { x64: 298, arm64: 241 },
  userfaultfd: { x64: 323, arm64: 282 },
  io_uring_setup: { x64: 425, arm64: 425 },
  init_module: { x64: 175, arm64: 105 },
  finit_module: { x64: 313, arm64: 273 },
  delete_module: { x64: 176, arm64: 106 },
  kexec_load: { x64: 246, arm64: 104 },
  kcmp: { x64: 312, arm64: 272 },
  acct: { x64: 163, arm64: 89 },
  swapon: { x64: 167, arm64: 224 },
  quotactl: { x64: 179, arm64: 60 },
  syslog: { x64: 103, arm64: 116 },
  reboot: { x64: 169, arm64: 142 },
  settimeofday: { x64: 164, arm64: 170 },
  sethostname: { x64: 170, arm64: 161 },
  open_by_handle_at: { x64: 304, arm64: 265 },
  fanotify_init: { x64: 300, arm64: 262 },
  open_tree_attr: { x64: 467, arm64: 467 },
  file_getattr: { x64: 468, arm64: 468 },
  file_setattr: { x64: 469, arm64: 469 },
  vhangup: { x64: 153, arm64: 58 },
};

/** How the kernel or the filter says that a call is not for this process. */
const refusals = [1, 13, 38];

/** Names of calls that the kernel took, be it to complain about their arguments. */
function callKernel({ calls }: { calls: [name: string, ...args: (number | string)[]][] }): string[] {
  return calls
    .filter(([name, ...args]) => {
      const number = numbers[name];
      if (number === undefined) throw new Error(`No number for ${name}.`);
      return !refusals.includes(systemCall(number, ...args).errno);
    })
    .map(([name]) => name);
}

/** Devices that can be opened. */
function openDevices({ beside }: { beside: string[] }): string[] {
  const harmless = [
    'null',
    'zero',
    'full',
    'random',
    'urandom',
    'tty',
    'ptmx',
    'pts',
    'shm',
    'fd',
    'stdin',
    'stdout',
    'stderr',
    'console',
    'core',
  ];
  const names = readdirSync('/dev').filter((name) => !harmless.includes(name));
  return [...names.map((name) => `/dev/${name}`), ...beside].filter((path) => canOpen(path, 'r'));
}

function canOpen(path: string, flags: string): boolean {
  try {
    closeSync(openSync(path, flags));
    return true;
  } catch {
    return false;
  }
}

/** Kernel settings that can be opened for writing. */
function openSettings({ paths }: { paths: string[] }): string[] {
  return paths.filter((path) => canOpen(path, 'r+'));
}

/** Kernel settings that can be changed to what they are. */
function writeSetting({ path, value }: { path: string; value: string }): string[] {
  try {
    writeFileSync(path, value);
    return [path];
  } catch {
    return [];
  }
}

export const kernelAttempts = { callKernel, openDevices, openSettings, writeSetting };
