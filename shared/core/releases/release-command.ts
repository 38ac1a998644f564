import { type DeployRun, describeWhatServes, type Verdict } from '#shared/core/releases/deploy-run.ts';
import { millisecondsPerSecond } from '#shared/durations.ts';
import { describeDuration } from '#shared/platform/describe-duration.ts';

/**
 * Runs the release command, if the release has one. It is ended when it takes longer than the settings allow.
 * @returns undefined when the rollout may begin
 * @throws the reason of `stopping` or `deleted`
 */
export async function runReleaseCommand(run: DeployRun): Promise<Verdict | undefined> {
  const { context, deploy, release, spec, log, stopping, deleted } = run;
  const command = release.release_command;
  if (command === null) return undefined;
  log.line(`-----> Running the release command: ${command}`);
  const seconds = context.settings.releaseCommandSeconds;
  const deadline = startDeadline(run, seconds);
  try {
    const exitCode = await context.platform.workloads.runOnce(
      { id: deploy.id, spec, command },
      (line) => log.line(`       ${line}`),
      AbortSignal.any([stopping, deleted, deadline.signal]),
    );
    if (exitCode === 0) return undefined;
    return refuse(run, `The release command exited with ${exitCode}, so v${release.version} was not rolled out.`);
  } catch (error) {
    if (!deadline.signal.aborted || stopping.aborted || deleted.aborted) throw error;
    const longest = describeDuration(seconds);
    return refuse(
      run,
      `The release command took longer than ${longest} and was stopped, so v${release.version} was not rolled out.`,
    );
  } finally {
    deadline.stop();
  }
}

function startDeadline({ context }: DeployRun, seconds: number): { signal: AbortSignal; stop(): void } {
  const deadline = new AbortController();
  const stopped = new AbortController();
  void context.clock.sleep(seconds * millisecondsPerSecond, stopped.signal).then(
    () => deadline.abort(new Error('The release command took too long.')),
    () => undefined,
  );
  return { signal: deadline.signal, stop: () => stopped.abort() };
}

function refuse({ app }: DeployRun, error: string): Verdict {
  const lines = [` !     ${error}`, describeWhatServes(app.current_release_id === null)];
  return { status: 'failed', error, failure: 'release_command', lines };
}
