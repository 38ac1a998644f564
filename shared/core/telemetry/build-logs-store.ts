import { type RawBuilder, sql } from 'kysely';
import type { CreatedAt, Db } from '#shared/database/db.ts';
import type { BuildId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** What a build and its deploy printed; `seq` counts up from 1 per build. */
    build_logs: { build_id: BuildId; seq: number; ts: CreatedAt; line: string };
  }
}

export interface BuildLogLine {
  /** Counts up from 1 within the build. */
  seq: number;
  ts: Date;
  line: string;
}

export interface NewLogLines {
  buildId: BuildId;
  lines: readonly { ts: Date; line: string }[];
  /** An earlier attempt at the same lines may have stored them and only not been able to report it. */
  again: boolean;
  /**
   * A statement that returns a row as long as whoever writes may do so. It is part of the statement that stores the
   * lines: both have happened, or neither.
   */
  fence: RawBuilder<unknown> | undefined;
}

/** Stores lines in order, behind those that the log has. Stores nothing where the fence returns no row. */
export async function appendBuildLog(db: Db, { buildId, lines, again, fence }: NewLogLines): Promise<void> {
  const last = lines.at(-1);
  await sql`with fence as (${fence ?? sql`select`})
    insert into build_logs (build_id, seq, ts, line)
    select ${buildId}::uuid, last.seq + row_number() over (order by batch.ordinality), batch.ts, batch.line
    from (select coalesce(max(seq), 0)::int as seq from build_logs where build_id = ${buildId}::uuid) last,
      unnest(${lines.map(({ ts }) => ts)}::timestamptz[], ${lines.map(({ line }) => line)}::text[]) with ordinality as batch (ts, line, ordinality)
    where exists (select from fence)
      and (not ${again} or not exists (select 1 from build_logs stored where stored.build_id = ${buildId}::uuid
        and stored.seq > last.seq - ${lines.length} and stored.ts = ${last?.ts} and stored.line = ${last?.line}))`.execute(db);
}

/** Lines in order, from the one after number `afterSeq`. */
export async function readBuildLog(
  db: Db,
  buildId: BuildId,
  { afterSeq, limit }: { afterSeq: number; limit: number },
): Promise<BuildLogLine[]> {
  return db
    .selectFrom('build_logs')
    .select(['seq', 'ts', 'line'])
    .where('build_id', '=', buildId)
    .where('seq', '>', afterSeq)
    .orderBy('seq')
    .limit(limit)
    .execute();
}
