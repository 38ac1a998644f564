import { type AppRow, readAppById, setCurrentRelease } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import { claimDeploy, type DeployRow, type ReleaseRow, readReleaseById } from '#shared/core/releases/releases-store.ts';
import { workloadSpec } from '#shared/core/releases/workload-spec.ts';
import { type BuildLogWriter, buildLogKey, createBuildLogWriter } from '#shared/core/telemetry/build-log-writer.ts';
import { createRedactor } from '#shared/core/telemetry/redaction.ts';
import { watchForEnd } from '#shared/core/watch.ts';
import { isDatabaseOutage } from '#shared/database/outages.ts';
import type { DeployStatus, DeployStep } from '#shared/database/schema.ts';
import type { AppId, DeployId } from '#shared/ids.ts';
import type { RolloutFacts, WorkloadSpec } from '#shared/platform/workloads.ts';

/** SPEC.md §3. */
const canaryWeights = [10, 25, 50, 100];
const deletionPollMilliseconds = 1000;

/** What a deploy came to, and what it tells the person who waits for it. */
interface Verdict {
  status: Extract<DeployStatus, 'live' | 'failed' | 'aborted' | 'superseded'>;
  error: string | null;
  lines: readonly string[];
}

const appWasDeleted: Verdict = { status: 'superseded', error: 'The app was deleted.', lines: [] };

/**
 * Brings one release live, or leaves the old one serving and says why. Again after a crash: the rollout goes on from
 * where the ground is. The release command may then run a second time.
 */
export async function runDeployJob(context: Context, deployId: DeployId, stopping: AbortSignal): Promise<void> {
  const { db } = context;
  const deploy = await claimDeploy(db, deployId);
  const release = deploy && (await readReleaseById(db, deploy.release_id));
  const app = release && (await readAppById(db, release.app_id));
  if (deploy === undefined || release === undefined || app === undefined) return;
  let redact = (text: string): string => text;
  const say = createSay(context, release, (text) => redact(text));
  const deletion = watchForEnd(
    context,
    { key: deletionKey(app.id), milliseconds: deletionPollMilliseconds, findReason: () => findDeletion(context, app.id) },
    stopping,
  );
  try {
    const spec = await workloadSpec(context, app, release);
    redact = createRedactor(spec.env);
    const verdict = await decide(context, app, deploy, release, spec, say, { stopping, deleted: deletion.signal });
    for (const line of verdict.lines) say.line(line);
    await say.flush();
    await recordVerdict(context, app, deploy, release, verdict);
  } catch (error) {
    // Whether its verdict was recorded nobody can tell: the next attempt can.
    if (stopping.aborted || isDatabaseOutage(error)) throw error;
    if (deletion.signal.aborted) return await recordVerdict(context, app, deploy, release, appWasDeleted);
    context.log.error('A deploy broke on our side.', { deployId, error });
    const cause = `The platform failed to roll out v${release.version}. The release before it serves on. Try \`paas restart\` or push again.`;
    say.line(` !     ${cause}`);
    await say.flush();
    await recordVerdict(context, app, deploy, release, { status: 'failed', error: cause, lines: [] });
  } finally {
    deletion.stop();
  }
}

/** Why a deploy may have to end early. */
interface Ends {
  /** The worker is asked to stop: the deploy goes on with the next one. */
  stopping: AbortSignal;
  /** Nobody wants it any more. */
  deleted: AbortSignal;
}

async function findDeletion({ db }: Context, appId: AppId): Promise<Error | undefined> {
  const app = await readAppById(db, appId);
  return app?.deleted_at === null ? undefined : new Error('The app was deleted.');
}

export function deletionKey(appId: AppId): string {
  return `deletion:${appId}`;
}

async function decide(
  context: Context,
  app: AppRow,
  deploy: DeployRow,
  release: ReleaseRow,
  spec: WorkloadSpec,
  say: BuildLogWriter,
  ends: Ends,
): Promise<Verdict> {
  if (app.deleted_at !== null) return appWasDeleted;
  if (deploy.attempt === 1 && (await hasNewerDeploy(context, release))) {
    return {
      status: 'superseded',
      error: 'A newer release was waiting.',
      lines: ['       Left to the newer release that waits already'],
    };
  }
  if (deploy.attempt === 1) say.line(`-----> Releasing v${release.version}`);
  const refused = await runReleaseCommand(context, release, spec, say, ends);
  if (refused !== undefined) return refused;
  return rollOut(context, app, deploy, release, spec, say, ends);
}

async function hasNewerDeploy({ db }: Context, release: ReleaseRow): Promise<boolean> {
  const newer = await db
    .selectFrom('deploys')
    .innerJoin('releases', 'releases.id', 'deploys.release_id')
    .select('deploys.id')
    .where('deploys.app_id', '=', release.app_id)
    .where('deploys.status', '=', 'pending')
    .where('releases.version', '>', release.version)
    .limit(1)
    .executeTakeFirst();
  return newer !== undefined;
}

async function runReleaseCommand(
  { platform }: Context,
  release: ReleaseRow,
  spec: WorkloadSpec,
  say: BuildLogWriter,
  { stopping, deleted }: Ends,
): Promise<Verdict | undefined> {
  if (release.release_command === null) return undefined;
  say.line(`-----> Running the release command: ${release.release_command}`);
  const exitCode = await platform.workloads.runOnce(
    spec,
    release.release_command,
    (line) => say.line(`       ${line}`),
    AbortSignal.any([stopping, deleted]),
  );
  if (exitCode === 0) return undefined;
  const error = `The release command exited with ${exitCode}, so v${release.version} was not rolled out.`;
  return { status: 'failed', error, lines: [` !     ${error}`, ...servesOn(spec)] };
}

async function rollOut(
  context: Context,
  app: AppRow,
  deploy: DeployRow,
  release: ReleaseRow,
  spec: WorkloadSpec,
  say: BuildLogWriter,
  { stopping, deleted }: Ends,
): Promise<Verdict> {
  const isFirst = app.current_release_id === null;
  const weights = isFirst ? [100] : canaryWeights;
  const hasWeb = spec.processes.some((process) => process.type === 'web' && process.quantity > 0);
  if (deploy.attempt === 1)
    say.line(hasWeb ? `-----> Rolling out: ${weights.map((weight) => `${weight}%`).join(' ')}` : '-----> Starting the processes');
  const steps: DeployStep[] = [...deploy.steps];
  let last: RolloutFacts = { phase: 'starting', weight: 0 };
  const rollout = context.platform.workloads.rollOut(spec, { weights, stepSeconds: context.settings.canaryStepSeconds }, deleted);
  for await (const facts of untilStopped(rollout, stopping)) {
    if (facts.weight > last.weight || steps.length === 0) await recordStep(context, deploy, steps, facts);
    if (facts.phase === 'progressing' && facts.detail !== undefined) say.line(`       ${facts.weight}%: ${facts.detail}`);
    last = facts;
  }
  if (last.phase === 'live') return { status: 'live', error: null, lines: deployedLines(context, app, spec, hasWeb) };
  const error = last.detail ?? 'The new release did not become healthy.';
  const output = (last.output ?? []).map((line) => `       ${line}`);
  return {
    status: 'aborted',
    error,
    lines: [
      ...(output.length > 0 ? ['       Its last output:', ...output] : []),
      ` !     v${release.version} was not rolled out: ${error}`,
      ...servesOn(spec, isFirst),
    ],
  };
}

/**
 * Throws when the worker is asked to stop, and leaves the rollout where it is: it is picked up there by the next worker.
 * Aborting it would take back a release that is doing well.
 */
async function* untilStopped(rollout: AsyncIterable<RolloutFacts>, stopping: AbortSignal): AsyncGenerator<RolloutFacts> {
  const facts = rollout[Symbol.asyncIterator]();
  const stopped = Promise.withResolvers<never>();
  // Nobody may be waiting at that moment.
  stopped.promise.catch(() => undefined);
  const stop = (): void => stopped.reject(stopping.reason);
  stopping.addEventListener('abort', stop, { once: true });
  if (stopping.aborted) stop();
  try {
    for (;;) {
      const next = await Promise.race([facts.next(), stopped.promise]);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    stopping.removeEventListener('abort', stop);
    // Whoever comes next waits until this one has let go of the app. Not waited for: it may be in the middle of a step.
    facts.return?.().catch(() => undefined);
  }
}

function deployedLines({ addresses }: Context, app: AppRow, spec: WorkloadSpec, hasWeb: boolean): string[] {
  const idle = spec.processes
    .filter((process) => process.quantity === 0 && process.type !== 'release')
    .map((process) => process.type);
  return [
    ...(idle.length > 0 ? [`       Not running: ${idle.join(', ')} (start with \`paas ps:scale ${idle[0]}=1\`)`] : []),
    hasWeb ? `       ${addresses.webUrl(app.name)} deployed` : `       ${app.name} deployed`,
  ];
}

function servesOn(spec: WorkloadSpec, isFirst = spec.releaseVersion === 1): string[] {
  return [
    isFirst
      ? ' !     Nothing serves yet. Mend it and push again.'
      : ' !     The release before it serves on. `paas logs` shows what happened.',
  ];
}

async function recordStep({ db, clock }: Context, deploy: DeployRow, steps: DeployStep[], facts: RolloutFacts): Promise<void> {
  steps.push({
    weight: facts.weight,
    at: clock.now().toISOString(),
    ...(facts.detail === undefined ? {} : { detail: facts.detail }),
  });
  await db
    .updateTable('deploys')
    .set({ weight: facts.weight, steps: JSON.stringify(steps) })
    .where('id', '=', deploy.id)
    .where('attempt', '=', deploy.attempt)
    .execute();
}

async function recordVerdict(
  { db, clock, wakeups }: Context,
  app: AppRow,
  deploy: DeployRow,
  release: ReleaseRow,
  verdict: Verdict,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const written = await trx
      .updateTable('deploys')
      .set({
        status: verdict.status,
        error: verdict.error,
        finished_at: clock.now(),
        ...(verdict.status === 'live' ? { weight: 100 } : { weight: 0 }),
      })
      .where('id', '=', deploy.id)
      .where('attempt', '=', deploy.attempt)
      .where('status', '=', 'rolling')
      .executeTakeFirst();
    if (written.numUpdatedRows === 0n) return;
    const status = verdict.status === 'live' ? 'succeeded' : verdict.status === 'superseded' ? 'pending' : 'failed';
    await trx.updateTable('releases').set({ status }).where('id', '=', release.id).execute();
    if (verdict.status === 'live') await setCurrentRelease(trx, app.id, release.id);
  });
  if (release.build_id !== null) wakeups.wake(buildLogKey(release.build_id));
}

/** A build's release speaks in the build's log, where somebody may be waiting; others speak in the app's own. */
function createSay(context: Context, release: ReleaseRow, redact: (text: string) => string): BuildLogWriter {
  if (release.build_id !== null && release.kind === 'build')
    return createBuildLogWriter(context, { buildId: release.build_id, redact });
  let last: Promise<void> = Promise.resolve();
  return {
    line(text) {
      const message = redact(text.replace(/^(?:-----> | !  {5}| {7})/, ''));
      last = last.then(() => context.platform.logs.appendPlatformLog(release.app_id, message)).catch(() => undefined);
    },
    flush: () => last,
  };
}
