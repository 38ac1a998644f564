/** How the workload driver runs a tenant's program; the sandbox is what it is made of. */
import type { Readable } from 'node:stream';
import type { AppId, TenantId } from '#shared/ids.ts';
import type { SandboxUsage } from '../sandbox/open-sandbox.ts';
import type { SandboxExit, SandboxRecord } from '../sandbox/sandbox-process.ts';

export interface ProgramSpec {
  /** Unique among the programs that run at one time. */
  id: string;
  appId: AppId;
  tenantId: TenantId;
  imageUrl: string;
  /** A shell command line; only a shell inside the sandbox ever sees it. */
  command: string;
  /** Secret. */
  env: Readonly<Record<string, string>>;
  /** File descriptors opened for appending; 'pipe' gives `stdout` and `stderr` of the program instead. */
  output: { stdout: number; stderr: number } | 'pipe';
  /** False: it ends with this process. True: it lives on. */
  outlivesUs: boolean;
}

export interface Program {
  /** IPv4 address at which the host reaches what the program listens on. */
  address: string;
  /** Plain data by which any process finds it again. */
  record: SandboxRecord;
  stdout: Readable | undefined;
  stderr: Readable | undefined;
  exited: Promise<SandboxExit>;
  /** Lets this process end without waiting for the program. */
  unref(): void;
}

export interface Programs {
  /** @throws AppError with what is wrong when it cannot be started */
  start(spec: ProgramSpec): Promise<Program>;
  isAlive(record: SandboxRecord): Promise<boolean>;
  /** Asks every process of it to end. */
  terminate(record: SandboxRecord): Promise<void>;
  /** Ends what is left of it and waits for that. Harmless when nothing is. */
  end(record: SandboxRecord): Promise<void>;
  /** Undefined when it runs no more. */
  readUsage(record: SandboxRecord): Promise<SandboxUsage | undefined>;
  /** Whether the kernel killed any of it for want of memory. Not known any more after `end`. */
  ranOutOfMemory(record: SandboxRecord): Promise<boolean>;
}

export interface ProgramEnd {
  /** 128 + n when it was ended by signal n; undefined when nobody was there to see. */
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
