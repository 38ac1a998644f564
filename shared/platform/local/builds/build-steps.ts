import { dirname } from 'node:path';
import { omitUndefined } from '#shared/omit-undefined.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { BuildOutput } from '#shared/platform/build-output.ts';
import type { LocalDiskSpace } from '../disk/local-disk-space.ts';
import { readLines } from '../logs/read-lines.ts';
import type { Sandbox } from '../sandbox/open-sandbox.ts';
import type { SandboxMount } from '../sandbox/sandbox.ts';
import type { SandboxContainer } from '../sandbox/sandbox-container.ts';
import type { CopyInSandbox } from './build-caches.ts';
import { explainFailure, type FullestVolume } from './build-causes.ts';
import { rememberSandbox } from './build-leftovers.ts';
import type { BuildDirectories, BuildLimits } from './build-space.ts';
import type { BuildStep } from './plans/build-plan.ts';

export interface StepRunnerParts {
  readonly sandbox: Sandbox;
  readonly directories: BuildDirectories;
  readonly recordId: string;
  readonly uid: number;
  /** Name of the network namespace that the step runs in; undefined: the host's network. */
  readonly network: string | undefined;
  readonly limits: BuildLimits;
  readonly diskSpace: LocalDiskSpace;
  /** Of the build's own file systems the one with the least room; undefined where it has none. */
  readonly findFullestVolume: () => Promise<FullestVolume | undefined>;
  readonly output: BuildOutput;
  /** Aborts on cancel and on timeout. */
  readonly signal: AbortSignal;
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly SandboxMount[];
  /** For steps that build container images. */
  readonly container?: SandboxContainer;
}

const diskCheckMilliseconds = 200;
/** With the directory that `to` is in, such as `.next` of `.next/cache`. */
const copyScript = 'mkdir -p -- "$3" && exec cp --archive --no-target-directory --reflink=auto -- "$1" "$2"';

/** Runs commands of one build in its sandbox, one at a time. */
export interface StepRunner {
  /**
   * @param mount what is mounted besides the mounts of all steps
   * @throws BuildFailure if it exits with anything but 0; the signal's reason if it aborts, after every process has ended
   */
  runStep(step: Pick<BuildStep, 'argv' | 'env'>, mount?: SandboxMount): Promise<void>;
  /** Copies a directory with modes, owners and times, into a new one; shares the bytes where the file system can. @throws like `runStep` */
  copy: CopyInSandbox;
  /** Whether anything has been run: code of the app may have changed its files then. */
  hasRun(): boolean;
}

/** Runs the steps of one build in its sandbox. */
export function createStepRunner(parts: StepRunnerParts): StepRunner {
  let ran = false;
  const run = (command: SandboxedCommand): Promise<void> => {
    ran = true;
    return runCommand(parts, command);
  };
  return {
    hasRun: () => ran,
    runStep: ({ argv, env }, mount) =>
      run({
        argv,
        env: { ...parts.env, ...env },
        mounts: mount === undefined ? parts.mounts : [...parts.mounts, mount],
      }),
    copy: ({ mount, from, to }) =>
      run({
        argv: ['/bin/sh', '-c', copyScript, 'copy', from, to, dirname(to)],
        env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
        mounts: [...parts.mounts, mount],
      }),
  };
}

interface SandboxedCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly SandboxMount[];
}

async function runCommand(parts: StepRunnerParts, command: SandboxedCommand): Promise<void> {
  const { sandbox, limits, output, signal, directories } = parts;
  const child = await sandbox.spawn(
    {
      ...command,
      id: parts.recordId,
      uid: parts.uid,
      cwd: '/app',
      tmp: { directory: directories.tmp },
      limits: { memoryBytes: limits.memoryBytes, processes: limits.processes, fileBytes: limits.slugBytes * 4 },
      network: parts.network,
      ...omitUndefined({ container: parts.container }),
      dieWithParent: true,
    },
    { stdout: 'pipe', stderr: 'pipe' },
  );
  await rememberSandbox(directories.base, child.record);
  const kill = (): void => void sandbox.end(child.record);
  signal.addEventListener('abort', kill, { once: true });
  if (signal.aborted) kill();
  const disk = watchDisk(parts.diskSpace, kill);
  try {
    const [{ code }] = await Promise.all([
      child.exited,
      readLines(child.stdout, output.tool),
      readLines(child.stderr, output.tool),
    ]);
    const outOfMemory = code !== 0 && (await sandbox.ranOutOfMemory(child.record));
    signal.throwIfAborted();
    if (code === 0) return;
    throw new BuildFailure(
      explainFailure({
        argv: command.argv,
        exitCode: code,
        outOfMemory,
        diskFull: disk.full(),
        volume: await parts.findFullestVolume(),
        tail: output.tail(),
        memoryBytes: limits.memoryBytes,
      }),
    );
  } finally {
    disk.stop();
    signal.removeEventListener('abort', kill);
    await sandbox.end(child.record);
  }
}

/** Calls `whenFull` once when the disk gets so full that the platform itself would suffer. */
function watchDisk({ readDiskSpace }: LocalDiskSpace, whenFull: () => void): { full(): boolean; stop(): void } {
  let full = false;
  const timer = setInterval(() => {
    readDiskSpace().then(
      ({ freeBytes, reserveBytes }) => {
        if (full || freeBytes >= reserveBytes) return;
        full = true;
        whenFull();
      },
      () => undefined, // the next look tells
    );
  }, diskCheckMilliseconds);
  return {
    full: () => full,
    stop: () => clearInterval(timer),
  };
}
