import { sql } from 'kysely';
import type { Context } from '#shared/core/context.ts';
import type { BuildLogLine } from '#shared/core/services.ts';
import { type BuildRow, readBuildById } from '#shared/database/builds.ts';
import { readDeployOfRelease } from '#shared/database/releases.ts';
import type { BuildId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

const flushMilliseconds = 50;
const pageLines = 1000;
/** Another process may write the log: without its wakeup this is how late a line can be. */
const pollMilliseconds = 500;

export function buildLogKey(buildId: BuildId): string {
  return `build:${buildId}`;
}

export interface BuildLogWriter {
  line(text: string): void;
  /** Everything said so far is stored when it resolves. */
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
    await sql`insert into build_logs (build_id, seq, ts, line)
      select ${buildId}::uuid, last.seq + row_number() over (order by batch.ordinality), batch.ts, batch.line
      from (select coalesce(max(seq), 0)::int as seq from build_logs where build_id = ${buildId}::uuid) last,
        unnest(${batch.map((entry) => entry.ts)}::timestamptz[], ${batch.map((entry) => entry.line)}::text[]) with ordinality as batch (ts, line, ordinality)`.execute(
      db,
    );
    wakeups.wake(buildLogKey(buildId));
  };
  const enqueueWrite = (): Promise<void> => {
    writing = writing.then(write).catch((error: unknown) => log.error('Lines of a build log were lost.', { buildId, error }));
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
