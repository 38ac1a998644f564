import { sql } from 'kysely';
import type { BuildLogLine } from '#shared/core/builds/builds.ts';
import { type BuildRow, readBuildById } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { readDeployOfRelease } from '#shared/core/releases/releases-store.ts';
import { isForeignKeyViolation } from '#shared/database/violations.ts';
import type { BuildId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

const flushMilliseconds = 50;
/** Between attempts to store lines: as long as a database may take to come back. Then they are given up. */
const retryMilliseconds = [100, 300, 1000, 3000, 5000, 10_000, 10_000];
const pageLines = 1000;
/** Another process may write the log: without its wakeup this is how late a line can be. */
const pollMilliseconds = 500;

export function buildLogKey(buildId: BuildId): string {
  return `build:${buildId}`;
}

export interface BuildLogWriter {
  line(text: string): void;
  /** Everything said so far is stored when it resolves, or is past storing. */
  flush(): Promise<void>;
}

/** Stores lines in small batches, in order, after whatever an earlier attempt said. One writer at a time a build. */
export function createBuildLogWriter(
  { db, clock, log, wakeups }: Context,
  buildId: BuildId,
  redact: (text: string) => string,
): BuildLogWriter {
  let pending: { ts: Date; line: string }[] = [];
  let writing: Promise<void> = Promise.resolve();
  let scheduled = false;
  let bytes = 0;

  const write = async (): Promise<void> => {
    scheduled = false;
    const batch = pending;
    pending = [];
    if (batch.length === 0) return;
    for (const [attempt, milliseconds] of [...retryMilliseconds, undefined].entries()) {
      try {
        await store(batch, attempt > 0);
        break;
      } catch (error) {
        // Of a build that was purged nobody reads the log.
        if (isForeignKeyViolation(error)) return;
        if (milliseconds === undefined) return log.error('Lines of a build log were lost.', { buildId, error });
        if (attempt === 0) log.warn('Lines of a build log cannot be stored yet; trying again.', { buildId, error });
        await clock.sleep(milliseconds);
      }
    }
    wakeups.wake(buildLogKey(buildId));
  };
  /** `again`: an attempt before may have stored them and only not been able to say so. */
  const store = (batch: readonly { ts: Date; line: string }[], again: boolean): Promise<unknown> =>
    sql`insert into build_logs (build_id, seq, ts, line)
      select ${buildId}::uuid, last.seq + row_number() over (order by batch.ordinality), batch.ts, batch.line
      from (select coalesce(max(seq), 0)::int as seq from build_logs where build_id = ${buildId}::uuid) last,
        unnest(${batch.map((entry) => entry.ts)}::timestamptz[], ${batch.map((entry) => entry.line)}::text[]) with ordinality as batch (ts, line, ordinality)
      where not ${again} or not exists (select 1 from build_logs stored where stored.build_id = ${buildId}::uuid
        and stored.seq > last.seq - ${batch.length} and stored.ts = ${batch.at(-1)?.ts} and stored.line = ${batch.at(-1)?.line})`.execute(
      db,
    );
  const enqueueWrite = (): Promise<void> => {
    writing = writing.then(write);
    return writing;
  };

  return {
    line(text) {
      if (bytes > limits.build.logBytes) return;
      bytes += text.length + 1;
      // PostgreSQL's text holds every character but NUL.
      const kept =
        bytes > limits.build.logBytes ? ' !     The log is too long; the rest is left out.' : redact(text.replaceAll('\0', ''));
      pending.push({ ts: clock.now(), line: kept });
      if (scheduled) return;
      scheduled = true;
      setTimeout(() => void enqueueWrite(), flushMilliseconds);
    },
    flush: enqueueWrite,
  };
}

export async function readBuildLog({ db }: Context, buildId: BuildId, afterSeq: number, limit: number): Promise<BuildLogLine[]> {
  return db
    .selectFrom('build_logs')
    .select(['seq', 'ts', 'line'])
    .where('build_id', '=', buildId)
    .where('seq', '>', afterSeq)
    .orderBy('seq')
    .limit(limit)
    .execute();
}

/** Lines as they come, until the build, and the deploy it led to, are over. */
export async function* followBuildLog(
  context: Context,
  buildId: BuildId,
  afterSeq: number,
  signal: AbortSignal,
): AsyncGenerator<BuildLogLine> {
  let seq = afterSeq;
  for (;;) {
    // Asked before the lines are read: what is said between the two is then read in the last round.
    const over = await isOver(context, buildId);
    for (let page = await readBuildLog(context, buildId, seq, pageLines); page.length > 0; ) {
      for (const line of page) {
        if (signal.aborted) return;
        yield line;
        seq = line.seq;
      }
      page = page.length < pageLines ? [] : await readBuildLog(context, buildId, seq, pageLines);
    }
    if (over || signal.aborted) return;
    await context.wakeups.wait(buildLogKey(buildId), pollMilliseconds, signal);
  }
}

async function isOver(context: Context, buildId: BuildId): Promise<boolean> {
  const build = await readBuildById(context.db, buildId);
  return build === undefined || (isBuildOver(build) && (await isDeployOver(context, build)));
}

export function isBuildOver(build: BuildRow): boolean {
  return build.status !== 'queued' && build.status !== 'running';
}

async function isDeployOver({ db }: Context, build: BuildRow): Promise<boolean> {
  if (build.release_id === null) return true;
  const deploy = await readDeployOfRelease(db, build.release_id);
  return deploy === undefined || (deploy.status !== 'pending' && deploy.status !== 'rolling');
}
