import type { Clock } from '#shared/clock.ts';
import { limits } from '#shared/limits.ts';
import type { LineSink } from '#shared/platform/builds.ts';
import { workloadEnvironment } from '#shared/platform/workload-environment.ts';
import type { CommandRun } from '#shared/platform/workloads.ts';
import { readLines } from '../logs/read-lines.ts';
import type { SandboxRecord } from '../sandbox/sandbox-process.ts';
import { describeEnd, type ProgramSpec, type Programs } from './programs.ts';

/** What a run needs. */
export interface RunDependencies {
  programs: Programs;
  clock: Clock;
  stopSeconds: number;
}

/** Runs a command to its end. When the signal aborts, it ends all its processes, then rejects with the signal's reason. */
export async function runProgramOnce(
  dependencies: RunDependencies,
  run: CommandRun,
  line: LineSink,
  signal: AbortSignal,
): Promise<number> {
  signal.throwIfAborted();
  const { programs } = dependencies;
  const program = await programs.start(planRun(run));
  let ending: Promise<void> | undefined;
  const onAbort = (): void => {
    ending = endGently(dependencies, program.record);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  // It may have aborted while the program was being started.
  if (signal.aborted) onAbort();
  try {
    const [{ code }] = await Promise.all([program.exited, readLines(program.stdout, line), readLines(program.stderr, line)]);
    await ending;
    signal.throwIfAborted();
    const outOfMemory = await programs.ranOutOfMemory(program.record);
    if (outOfMemory) line(`The command ${describeEnd({ code, outOfMemory }, limits.app.memoryBytes)}.`);
    return code;
  } finally {
    signal.removeEventListener('abort', onAbort);
    await programs.end(program.record);
  }
}

/** The program of a run, which ends with the control plane. */
export function planRun({ id: runId, spec, command }: CommandRun): ProgramSpec {
  return {
    // An earlier attempt at this run ends with its control plane, but not necessarily before this one begins.
    id: `run.${runId}.${crypto.randomUUID().slice(0, 8)}`,
    appId: spec.appId,
    tenantId: spec.tenantId,
    imageUrl: spec.imageUrl,
    command,
    env: {
      ...workloadEnvironment(spec),
      DYNO: 'run',
      PAAS_APP: spec.appName,
      PAAS_RELEASE: `v${spec.releaseVersion}`,
      PAAS_PROCESS: 'run',
    },
    output: 'pipe',
    survivesControlPlane: false,
  };
}

/** Ends a program by SIGTERM, and kills what is left after the time to stop. */
export async function endGently({ programs, clock, stopSeconds }: RunDependencies, record: SandboxRecord): Promise<void> {
  await programs.terminate(record);
  const patience = AbortSignal.timeout(stopSeconds * 1000);
  while (!patience.aborted && (await programs.isAlive(record))) await clock.sleep(20);
  await programs.end(record);
}
