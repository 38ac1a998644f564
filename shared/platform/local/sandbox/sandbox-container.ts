/**
 * Containers in the sandbox: code that expects users of its own, root among them, and the root directory of an image. Both kinds are in
 * a user namespace, whose root is the app's uid outside. This file is the pure part, as `sandbox.ts`.
 */
import { AppError } from '#shared/errors.ts';
import type { NameFiles } from './name-files.ts';
import type { UserRange } from './user-ranges.ts';

/** What a container is run for. */
export type SandboxContainer =
  /** Tools of the platform that build or unpack an image: root inside, and may mount. The files are those of any sandbox. */
  | { readonly kind: 'tools'; readonly users: UserRange }
  /** Code of an image, which sees the files of that image only. */
  | {
      readonly kind: 'image';
      readonly users: UserRange;
      /** Where the image's files are in the sandbox: absolute, a mount or the layer. */
      readonly root: string;
      /** As seen inside. */
      readonly uid: number;
      readonly gid: number;
    };

/** Capabilities of programs in a container, as far as they have any effect in its user namespace. Those of Docker without MKNOD. */
const programCapabilities = [
  'CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER', 'CAP_FSETID', 'CAP_KILL', 'CAP_NET_BIND_SERVICE', 'CAP_SETGID', 'CAP_SETUID',
  'CAP_SYS_CHROOT',
]; // biome-ignore format: a list of words

/** Of the platform's tools in a container, of which those that run the image's code drop what is not in the list above. */
export const toolCapabilities = [
  ...programCapabilities,
  'CAP_DAC_READ_SEARCH',
  'CAP_MKNOD',
  'CAP_SETFCAP',
  'CAP_SETPCAP',
  'CAP_SYS_ADMIN',
];

/** Becomes root of the user namespace that bubblewrap has entered. */
export const becomeRootInside: readonly string[] = ['/usr/bin/setpriv', '--reuid', '0', '--regid', '0', '--clear-groups', '--'];

/** What runs inside the first sandbox. */
export interface ContainerPlan {
  readonly argv: readonly string[];
  /** The environment of the tools that set the container up, not of its code. */
  readonly env: Readonly<Record<string, string>>;
  /** Data for the descriptors from `firstDescriptor` on. */
  readonly descriptors: readonly (string | Uint8Array)[];
}

/** What is run in a container, and how. */
export interface ContainerProgram {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Absolute, as the program sees it. */
  readonly cwd: string;
}

/** What sets a container up. */
export interface ContainerTools {
  readonly bwrap: string;
  /** Of system calls, for the code of the image. */
  readonly filter: Uint8Array;
  readonly names: NameFiles;
  readonly firstDescriptor: number;
}

/**
 * A second bubblewrap, inside: it has only the rights of the user namespace, so that links in the image lead nowhere but in the sandbox.
 * Environment and filter go through descriptors. `nsenter` enters no namespace here: it changes root directory, working directory and user
 * at once, and the image needs no program for that.
 * @throws AppError 'validation_failed' for a variable with a NUL: what follows it would be read as an option
 */
export function planContainer(
  program: ContainerProgram,
  { root, uid, gid }: Extract<SandboxContainer, { kind: 'image' }>,
  tools: ContainerTools,
): ContainerPlan {
  for (const [name, value] of Object.entries(program.env))
    if (`${name}${value}`.includes('\0'))
      throw new AppError('validation_failed', `${name} contains a NUL byte, which no environment can hold.`);
  const [optionsAt, filterAt, hostsAt, resolversAt] = [0, 1, 2, 3].map((index) => String(tools.firstDescriptor + index)) as [
    string,
    string,
    string,
    string,
  ];
  const options = [
    '--cap-drop', 'ALL', ...programCapabilities.flatMap((name) => ['--cap-add', name]),
    '--clearenv',
    '--bind', '/', '/',
    '--bind', '/proc', `${root}/proc`, '--dev-bind', '/dev', `${root}/dev`,
    '--perms', '0444', '--ro-bind-data', hostsAt, `${root}/etc/hosts`,
    '--perms', '0444', '--ro-bind-data', resolversAt, `${root}/etc/resolv.conf`,
    '--seccomp', filterAt,
    ...Object.entries(program.env).flatMap(([name, value]) => ['--setenv', name, value]),
  ]; // biome-ignore format: one option group a line
  return {
    argv: [
      tools.bwrap, '--args', optionsAt, '--',
      '/usr/bin/nsenter', `--root=${root}`, `--wdns=${program.cwd}`, `--setuid=${uid}`, `--setgid=${gid}`, '--no-fork', '--',
      ...program.argv,
    ], // biome-ignore format: as typed on a command line
    env: { PATH: '/usr/bin:/bin' },
    descriptors: [options.map((option) => `${option}\0`).join(''), tools.filter, tools.names.hosts, tools.names.resolvers],
  };
}
