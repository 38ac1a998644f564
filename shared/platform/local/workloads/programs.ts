/** How the workload driver runs an app's programs. `sandboxed-programs.ts` implements it. */
import type { Readable, Writable } from 'node:stream';
import type { AppId, TenantId } from '#shared/ids.ts';
import type { InstanceNetworks } from '../network/instance-networks.ts';
import type { SandboxUsage } from '../sandbox/open-sandbox.ts';
import type { SandboxExit, SandboxRecord } from '../sandbox/sandbox-process.ts';

/** What is run, and for which app. */
export interface ProgramSpec {
  /** Unique among the programs that run at the same time. */
  id: string;
  appId: AppId;
  tenantId: TenantId;
  imageUrl: string;
  /** A shell command line. Only a shell inside the sandbox ever sees it. */
  command: string;
  /** Secret. */
  env: Readonly<Record<string, string>>;
  /** File descriptors of pipes; 'pipe' gives `stdout` and `stderr` of the program instead. */
  output: { stdout: number; stderr: number } | 'pipe';
  /** Whether its input comes from a pipe; left out: it is empty. */
  input?: boolean;
  /** Name of the network namespace of an `InstanceNetwork`; left out: it shares the app's network. */
  network?: string | undefined;
  /** Whether it runs on when this process ends. */
  survivesControlPlane: boolean;
}

/** A program that was started. */
export interface Program {
  /** IPv4 address at which the host reaches what the program listens on. */
  address: string;
  /** Ports that its image declares. */
  exposedPorts: readonly number[];
  /** Plain data that identifies it to any process. */
  record: SandboxRecord;
  stdout: Readable | undefined;
  stderr: Readable | undefined;
  /** Undefined when the input is empty. */
  stdin: Writable | undefined;
  exited: Promise<SandboxExit>;
  /** Lets this process end while the program runs. */
  unref(): void;
}

/** Starts, measures and ends programs. */
export interface Programs {
  /** Networks of their own for instances; undefined where apps share the host's network. */
  readonly networks: InstanceNetworks | undefined;
  /** @throws AppError with the reason when it cannot be started */
  start(spec: ProgramSpec): Promise<Program>;
  isAlive(record: SandboxRecord): Promise<boolean>;
  /** Sends SIGTERM to all its processes. */
  terminate(record: SandboxRecord): Promise<void>;
  /** Kills what is left of it, and resolves when nothing is. */
  end(record: SandboxRecord): Promise<void>;
  /** Undefined when it has ended. */
  readUsage(record: SandboxRecord): Promise<SandboxUsage | undefined>;
  /** Whether the kernel killed one of its processes because memory ran out. Always false after `end`. */
  ranOutOfMemory(record: SandboxRecord): Promise<boolean>;
}

/** How a program ended. */
export interface ProgramEnd {
  /** 128 + n when it was ended by signal n; undefined when it was not a child of this process. */
  code: number | undefined;
  outOfMemory: boolean;
}

/** 'exited with code 1', 'ran out of memory (512 MiB) and was killed'. */
export function describeEnd({ code, outOfMemory }: ProgramEnd, memoryBytes: number): string {
  if (outOfMemory) return `ran out of memory (${Math.round(memoryBytes / 1024 / 1024)} MiB) and was killed`;
  if (code === undefined) return 'ended';
  if (code === 137) return 'was killed (SIGKILL)';
  if (code > 128 && code < 160) return `was ended by signal ${code - 128}`;
  return `exited with code ${code}`;
}
