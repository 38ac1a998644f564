import { statfs } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { Sandbox } from '../sandbox/open-sandbox.ts';
import type { SandboxMount } from '../sandbox/sandbox.ts';
import { explainFailure } from './build-causes.ts';
import { rememberSandbox } from './build-leftovers.ts';
import type { BuildOutput } from './build-output.ts';
import type { BuildDirectories, BuildLimits } from './build-space.ts';
import type { BuildStep } from './builders/builder.ts';

export interface StepRunnerParts {
  readonly sandbox: Sandbox;
  readonly directories: BuildDirectories;
  readonly recordId: string;
  readonly uid: number;
  /** Name of the network namespace that the step runs in; undefined: the host's network. */
  readonly network: string | undefined;
  readonly limits: BuildLimits;
  readonly output: BuildOutput;
  /** Aborts on cancel and on timeout. */
  readonly signal: AbortSignal;
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly SandboxMount[];
}

// What has to stay free on the disk of the data directory while tenants' code writes to it: PostgreSQL needs room too.
const reservedBytes = 512 * 1024 * 1024;
const diskCheckMilliseconds = 1000;

export function createStepRunner(parts: StepRunnerParts): {
  /** @throws BuildFailure when it exits with anything but 0; the signal's reason when it aborts, with every process ended */
  runStep(step: BuildStep): Promise<void>;
} {
  return {
    async runStep(step) {
      const { sandbox, limits, output, signal, directories } = parts;
      const child = await sandbox.spawn(
        {
          id: parts.recordId,
          uid: parts.uid,
          argv: step.argv,
          env: { ...parts.env, ...step.env },
          cwd: '/app',
          mounts: parts.mounts,
          tmp: { directory: directories.tmp },
          limits: { memoryBytes: limits.memoryBytes, processes: limits.processes, fileBytes: limits.slugBytes * 4 },
          network: parts.network,
          dieWithParent: true,
        },
        { stdout: 'pipe', stderr: 'pipe' },
      );
      await rememberSandbox(directories.base, child.record);
      const kill = (): void => void sandbox.end(child.record);
      signal.addEventListener('abort', kill, { once: true });
      if (signal.aborted) kill();
      const disk = watchDisk(directories.base, kill);
      try {
        const [{ code }] = await Promise.all([child.exited, listen(child.stdout, output), listen(child.stderr, output)]);
        const outOfMemory = code !== 0 && (await sandbox.ranOutOfMemory(child.record));
        signal.throwIfAborted();
        if (code === 0) return;
        throw new BuildFailure(
          explainFailure({
            argv: step.argv,
            exitCode: code,
            outOfMemory,
            diskFull: disk.full(),
            tail: output.tail(),
            memoryBytes: limits.memoryBytes,
          }),
        );
      } finally {
        disk.stop();
        signal.removeEventListener('abort', kill);
        await sandbox.end(child.record);
      }
    },
  };
}

async function listen(stream: Readable | undefined, output: BuildOutput): Promise<void> {
  const lines = output.tool();
  for await (const chunk of stream ?? []) lines.push(chunk as Uint8Array);
  lines.end();
}

/** Calls `whenFull` once when the disk gets so full that the platform itself would suffer. */
function watchDisk(path: string, whenFull: () => void): { full(): boolean; stop(): void } {
  let full = false;
  const timer = setInterval(() => {
    statfs(path).then(
      ({ bavail, bsize }) => {
        if (full || bavail * bsize >= reservedBytes) return;
        full = true;
        whenFull();
      },
      () => undefined, // the build is being cleared away
    );
  }, diskCheckMilliseconds);
  return {
    full: () => full,
    stop: () => clearInterval(timer),
  };
}
