import { requireAppToChange } from '#shared/core/apps/app-access.ts';
import type { AppRow } from '#shared/core/apps/apps-store.ts';
import { watchForDeletion } from '#shared/core/apps/watch-deletion.ts';
import type { Context } from '#shared/core/context.ts';
import { requireInstances } from '#shared/core/releases/instance-quota.ts';
import { countInstances } from '#shared/core/releases/instances-store.ts';
import { readBaseRelease } from '#shared/core/releases/releases-store.ts';
import type { RunEvent, Runs } from '#shared/core/releases/runs.ts';
import { deleteRun, hasRun, insertRun, renewRun, renewSeconds } from '#shared/core/releases/runs-store.ts';
import { workloadSpec } from '#shared/core/releases/workload-spec.ts';
import { millisecondsPerSecond } from '#shared/durations.ts';
import { AppError, notFound } from '#shared/errors.ts';
import { isUuid, newUuid, type RunId, type UserId } from '#shared/ids.ts';
import { joinWords } from '#shared/platform/command-words.ts';
import type { AttachedRun } from '#shared/platform/workloads.ts';

/** Who runs what, for the app's log. */
interface StartedRun {
  app: AppRow;
  email: string;
  run: AttachedRun & { id: RunId };
}

/** One-off commands. */
export function createRuns(context: Context): Runs {
  const { db, platform } = context;
  return {
    async startRun(caller, app, { command, input, terminal }, signal) {
      const { principal, row } = await requireAppToChange(context, caller, app);
      const release = await readBaseRelease(db, row.id);
      if (release === undefined)
        throw new AppError('conflict', `${row.name} has no release yet. Deploy first: git push paas ${row.branch}`);
      const id = newUuid<RunId>();
      const spec = await workloadSpec(context, row, release);
      await reserve(context, row, { id, userId: principal.userId });
      const run = { id, spec, command: typeof command === 'string' ? command : joinWords(command), input, terminal };
      return follow(context, { app: row, email: principal.email, run }, signal);
    },

    async writeInput(caller, app, run, bytes) {
      const { row } = await requireAppToChange(context, caller, app);
      if (!isUuid(run) || !(await hasRun(db, row.id, run as RunId))) throw notFound('run');
      if (!(await platform.workloads.writeInput(run, bytes))) throw notFound('run');
    },

    async checkAccess(caller, app) {
      await requireAppToChange(context, caller, app);
    },
  };
}

/** Counts the run as an instance. @throws AppError `forbidden` past the quota */
async function reserve(context: Context, app: AppRow, { id, userId }: { id: RunId; userId: UserId }): Promise<void> {
  await context.db.transaction().execute(async (trx) => {
    let used: number | undefined;
    await requireInstances(context, trx, app.tenant_id, async () => {
      if (used === undefined) {
        used = await countInstances(trx, app.tenant_id);
        await insertRun(trx, { id, app_id: app.id, user_id: userId });
      }
      return { used, wanted: await countInstances(trx, app.tenant_id) };
    });
  });
}

async function* follow(context: Context, started: StartedRun, signal: AbortSignal): AsyncIterable<RunEvent> {
  const { db, platform, log } = context;
  const { app, email, run } = started;
  const over = new AbortController();
  const deletion = watchForDeletion(context, app.id, signal);
  void keepRenewed(context, run.id, over.signal);
  const name = `run.${run.id.slice(0, 8)}`;
  let outcome = 'was ended';
  try {
    // Without the command, which may contain a secret: viewers read this log.
    await platform.logs.appendPlatformLog(app.id, `${email} started ${name} with v${run.spec.releaseVersion}`);
    for await (const output of platform.workloads.runAttached(run, AbortSignal.any([signal, deletion.signal]))) {
      if ('exitCode' in output) outcome = `exited with code ${output.exitCode}`;
      yield 'started' in output ? { id: run.id, releaseVersion: run.spec.releaseVersion } : output;
    }
  } catch (error) {
    if (!deletion.signal.aborted || signal.aborted) throw error;
    throw new AppError('conflict', 'The app was deleted, and the command was ended.', { cause: error });
  } finally {
    deletion.stop();
    over.abort();
    await deleteRun(db, run.id).catch((error: unknown) => log.warn('A run that has ended was not removed.', { error }));
    await platform.logs.appendPlatformLog(app.id, `${name} ${outcome}`).catch(() => undefined);
  }
}

/** A renewal that fails is repeated with the next one. */
async function keepRenewed({ db, clock }: Context, id: RunId, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await clock.sleep(renewSeconds * millisecondsPerSecond, over).catch(() => undefined);
    if (!over.aborted) await renewRun(db, id).catch(() => undefined);
  }
}
