const load = 0x20; // BPF_LD | BPF_W | BPF_ABS
const jumpIfEqual = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const jumpIfGreater = 0x25; // BPF_JMP | BPF_JGT | BPF_K
const jumpIfAnyBit = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const give = 0x06; // BPF_RET | BPF_K

const offsetOf = { number: 0, architecture: 4, firstArgument: 16, thirdArgument: 32 } as const;

const allow = 0x7fff0000;
const killProcess = 0x80000000;
const failWith = (errno: number): number => 0x00050000 | errno;
const notPermitted = failWith(1);
const notImplemented = failWith(38);
const protocolNotSupported = failWith(93);
const familyNotSupported = failWith(97);

/** Address families of socket(2) that programs may use besides netlink. */
const openFamilies = { unix: 1, internet: 2, internet6: 10 } as const;
const netlinkFamily = 16;
/** The only netlink protocol that C libraries use: interfaces and addresses. */
const netlinkRoute = 0;

const cloneNewUser = 0x10000000;
// The x32 calls of x86-64 have this bit; they would bypass the numbers below.
const x32 = 0x40000000;

/**
 * The newest call that was looked at (removexattrat, Linux 6.13); its number is the same on all processors. Programs and C libraries do
 * without later ones, as on an older kernel.
 */
const newestCall = 466;

interface Architecture {
  readonly audit: number;
  readonly refuseX32: boolean;
  readonly clone: number;
  readonly clone3: number;
  readonly socket: number;
  readonly socketpair: number;
  readonly unshare: number;
  /** mount umount2 pivot_root */
  readonly mounting: readonly number[];
  readonly refused: readonly number[];
}

/** Numbers of the calls that are always refused, in this order: mounts, namespaces, keyrings, tracing, kernel modules and others. */
const architectures: Readonly<Record<string, Architecture>> = {
  x64: {
    audit: 0xc000003e,
    refuseX32: true,
    clone: 56,
    clone3: 435,
    socket: 41,
    socketpair: 53,
    unshare: 272,
    mounting: [165, 166, 155],
    // move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr, setns,
    // add_key request_key keyctl, bpf perf_event_open userfaultfd process_vm_writev kcmp syslog fanotify_init open_by_handle_at,
    // init_module delete_module finit_module kexec_load kexec_file_load, acct swapon swapoff quotactl quotactl_fd,
    // io_uring_setup _enter _register
    refused: [
      429, 428, 430, 431, 432, 433, 442, 308, 248, 249, 250, 321, 298, 323, 311, 312, 103, 300, 304, 175, 176, 313, 246, 320, 163,
      167, 168, 179, 443, 425, 426, 427,
    ],
  },
  arm64: {
    audit: 0xc00000b7,
    refuseX32: false,
    clone: 220,
    clone3: 435,
    socket: 198,
    socketpair: 199,
    unshare: 97,
    mounting: [40, 39, 41],
    refused: [
      429, 428, 430, 431, 432, 433, 442, 268, 217, 218, 219, 280, 241, 282, 271, 272, 116, 262, 265, 105, 106, 273, 104, 294, 89,
      224, 225, 60, 443, 425, 426, 427,
    ],
  },
};

/**
 * A system call filter for tenants' code (seccomp BPF). It refuses namespaces, mounts, keyrings, tracing, and kernel interfaces that
 * web apps do not need and that were often used to escape sandboxes. Of sockets it allows those of the internet, Unix sockets and
 * lists of interfaces: others, such as AF_VSOCK (the machine's hypervisor), belong to no network namespace or are rarely tested parts of
 * the kernel. Calls that are newer than this file do not exist. All others are allowed.
 * @param purpose 'container-tools' is for programs of the platform that set a container up: they may mount and make every namespace but one
 * of users
 * @returns an array of struct sock_filter
 * @throws Error for a processor whose call numbers are not in this file
 */
export function seccompFilter(architecture: string = process.arch, purpose: 'code' | 'container-tools' = 'code'): Uint8Array {
  const numbers = architectures[architecture];
  if (numbers === undefined)
    throw new Error(`No sandbox on ${architecture}: shared/platform/local/sandbox/sandbox-seccomp.ts lacks its call numbers.`);
  const program: Instruction[] = [
    [load, 0, 0, offsetOf.architecture],
    [jumpIfEqual, 1, 0, numbers.audit],
    [give, 0, 0, killProcess],
    [load, 0, 0, offsetOf.number],
    ...(numbers.refuseX32 ? answerIf(jumpIfAnyBit, x32, notImplemented) : []),
    ...answerIf(jumpIfGreater, newestCall, notImplemented),
    // Its flags are behind a pointer, which a filter cannot read. C libraries fall back to clone.
    ...answerIf(jumpIfEqual, numbers.clone3, notImplemented),
    ...(purpose === 'code' ? [...numbers.mounting, numbers.unshare] : []).flatMap((number) =>
      answerIf(jumpIfEqual, number, notPermitted),
    ),
    ...numbers.refused.flatMap((number) => answerIf(jumpIfEqual, number, notPermitted)),
    [jumpIfEqual, 1, 0, numbers.socket],
    [jumpIfEqual, 0, sockets.length, numbers.socketpair],
    ...sockets,
    [jumpIfEqual, 2, 0, numbers.clone],
    [jumpIfEqual, 1, 0, numbers.unshare],
    [give, 0, 0, allow],
    [load, 0, 0, offsetOf.firstArgument],
    ...answerIf(jumpIfAnyBit, cloneNewUser, notPermitted),
    [give, 0, 0, allow],
  ];
  return assemble(program);
}

/** struct sock_filter: code, jump if true, jump if false, constant. */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, constant: number];

/** The verdict on socket(2) and socketpair(2). */
const sockets: readonly Instruction[] = [
  [load, 0, 0, offsetOf.firstArgument],
  ...Object.values(openFamilies).flatMap((family) => answerIf(jumpIfEqual, family, allow)),
  [jumpIfEqual, 1, 0, netlinkFamily],
  [give, 0, 0, familyNotSupported],
  [load, 0, 0, offsetOf.thirdArgument],
  ...answerIf(jumpIfEqual, netlinkRoute, allow),
  [give, 0, 0, protocolNotSupported],
];

function answerIf(test: number, constant: number, answer: number): Instruction[] {
  return [
    [test, 0, 1, constant],
    [give, 0, 0, answer],
  ];
}

function assemble(program: readonly Instruction[]): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(program.length * 8));
  program.forEach(([code, ifTrue, ifFalse, constant], index) => {
    bytes.setUint16(index * 8, code, true);
    bytes.setUint8(index * 8 + 2, ifTrue);
    bytes.setUint8(index * 8 + 3, ifFalse);
    bytes.setUint32(index * 8 + 4, constant >>> 0, true);
  });
  return new Uint8Array(bytes.buffer);
}
