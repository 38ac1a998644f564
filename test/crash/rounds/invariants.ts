import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { movedMessage } from '#shared/core/repositories/ref-moves.ts';
import type { RepositoryId } from '#shared/ids.ts';
import type { PlatformFacts } from '#test/support/crash/control-plane-calls.ts';
import { run } from '#test/support/run-program.ts';
import type { TestEnvironment } from './test-environment.ts';

/** The platform's promise, on every machine. On two processors with a load of 16 it took 4 s. */
const resumeSeconds = 30;
const pollMilliseconds = 20;

/**
 * Waits until nothing is under way any more.
 * @param patience so many times the promised time is allowed
 * @returns the work that has not been resumed in time
 */
export async function waitUntilIdle(
  environment: TestEnvironment,
  patience: number,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const allowedSeconds = resumeSeconds * patience;
  const deadline = performance.now() + allowedSeconds * 1000;
  for (;;) {
    // A git host is looked at now and then for ever; what is to be asked of it is a hint. Maintenance is planned for days ahead; a job that is to be retried is planned for less than half an hour.
    const { rows } = await sql<{ what: string }>`
      select 'build ' || status as what from builds where status in ('queued', 'running')
      union all select 'deploy ' || status from deploys where status in ('pending', 'rolling')
      union all select 'job ' || t.identifier || coalesce(': ' || j.last_error, '') || ' ' || json_build_object('runAt', j.run_at,
          'attempts', j.attempts, 'lockedAt', j.locked_at, 'queueLockedAt', q.locked_at, 'now', now())
        from graphile_worker._private_jobs j
        join graphile_worker._private_tasks t on t.id = j.task_id
        left join graphile_worker._private_job_queues q on q.id = j.job_queue_id
        where j.run_at < now() + interval '30 minutes' and t.identifier <> 'look-at-source'
      union all select 'hint of ' || branch from source_hints`.execute(environment.db);
    if (rows.length === 0 || signal?.aborted === true) return [];
    if (performance.now() > deadline)
      return rows.map(({ what }) => `not resumed in ${allowedSeconds} s at load ${loadavg()[0]?.toFixed(1)}: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pollMilliseconds));
  }
}

/** @returns the ids of apps with unfinished work */
export async function findUnfinished(environment: TestEnvironment): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ app_id: string }>`
    select app_id from builds where status in ('queued', 'running')
    union select r.app_id from deploys d join releases r on r.id = d.release_id where d.status in ('pending', 'rolling')
    union select app_id from app_addons where status <> 'Ready' or removed_at is not null
    union select (j.payload ->> 'appId')::uuid from graphile_worker._private_jobs j
      join graphile_worker._private_tasks t on t.id = j.task_id where t.identifier = 'ensure-addon'`.execute(environment.db);
  return new Set(rows.map(({ app_id }) => app_id));
}

/** Checks what must hold of every app when nothing is under way, whatever faults there were. */
export async function findViolations(environment: TestEnvironment, facts: PlatformFacts): Promise<readonly string[]> {
  const { rows } = await sql<{ what: string }>`
    select 'starts counted ' || (select coalesce(sum(count), 0) from build_starts) || ', builds ' || count(*) + ${environment.purgedBuilds} as what
      from builds having count(*) + ${environment.purgedBuilds} <> (select coalesce(sum(count), 0) from build_starts)
    union all
    select 'a build that ' || b.status || ' has ' || count(r.id) || ' releases' from builds b
      left join releases r on r.build_id = b.id and r.kind = 'build' group by b.id, b.status
      having count(r.id) <> (case when b.status = 'succeeded' then 1 else 0 end)
    union all
    select 'a release has ' || count(d.id) || ' deploys' from releases r
      left join deploys d on d.release_id = r.id group by r.id having count(d.id) <> 1
    union all
    select 'a deploy ' || status || ': ' || coalesce(error, '') from deploys
      where status = 'failed' or (status = 'aborted' and (error is distinct from ${movedMessage} or jsonb_array_length(steps) = 0))
    union all
    select 'the current release is v' || coalesce(c.version, 0) || ', the newest live one v' || coalesce(l.version, 0) from apps a
      left join releases c on c.id = a.current_release_id
      left join lateral (select r.version from releases r join deploys d on d.release_id = r.id and d.status = 'live'
        where r.app_id = a.id order by r.version desc limit 1) l on true
      where c.version is distinct from l.version
    union all
    select g.name || ' is at ' || g.oid || ', the current release is of ' || c.commit from apps a
      join releases c on c.id = a.current_release_id
      join git_refs g on g.repository_id = a.repository_id and g.name = 'refs/heads/' || coalesce(a.preview_branch, a.branch)
      where a.deleted_at is null and c.commit <> g.oid
    union all
    select 'a build without a log' from builds b where started_at is not null and not exists (select 1 from build_logs l where l.build_id = b.id)`.execute(
    environment.db,
  );
  const running: string[] = [];
  const current = await environment.db
    .selectFrom('apps')
    .leftJoin('releases', 'releases.id', 'apps.current_release_id')
    .select(['apps.id', 'releases.version'])
    .execute();
  for (const { id, version } of current) {
    const versions = facts.versions[id] ?? [];
    const expected = version === null ? [] : [version];
    if (versions.join() !== expected.join()) running.push(`v${versions.join()} runs, v${version} is current`);
  }
  return [...rows.map(({ what }) => what), ...running];
}

/** To be called right after a start. Nothing may be left of pushes that were cut short, and every known pack must have its files. */
export async function findLeftovers(environment: TestEnvironment): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const { id } of await environment.db.selectFrom('apps').select('id').execute()) {
    const repository = join(environment.directory, 'git', id);
    const quarantined: string[] = await readdir(join(repository, 'quarantine')).catch(() => []);
    if (quarantined.length > 0) problems.push(`${quarantined.length} quarantines are left`);
    const files: string[] = await readdir(join(repository, 'packs')).catch(() => []);
    const known = await environment.db
      .selectFrom('git_packs')
      .select('pack_id')
      .where('repository_id', '=', id as string as RepositoryId)
      .execute();
    const expected = known.flatMap(({ pack_id }) => ['idx', 'links', 'pack'].map((kind) => `${pack_id}.${kind}`)).sort();
    const surplus = files.filter((file: string) => !expected.includes(file));
    const missing = expected.filter((file) => !files.includes(file));
    if (surplus.length > 0) problems.push(`files of unknown packs: ${surplus.join(', ')}`);
    if (missing.length > 0) problems.push(`files of packs are missing: ${missing.join(', ')}`);
  }
  return problems;
}

/** @returns what stock git finds wrong with a repository as it is stored */
export async function fsck(environment: TestEnvironment, repositoryId: RepositoryId): Promise<readonly string[]> {
  const bare = await mkdtemp(join(tmpdir(), 'paas-crash-fsck-'));
  try {
    await mkdir(join(bare, 'objects', 'pack'), { recursive: true });
    await mkdir(join(bare, 'refs'));
    await writeFile(join(bare, 'HEAD'), 'ref: refs/heads/main\n');
    await writeFile(join(bare, 'config'), '[core]\nrepositoryformatversion = 0\nbare = true\n');
    const refs = await environment.db
      .selectFrom('git_refs')
      .selectAll()
      .where('repository_id', '=', repositoryId)
      .orderBy('name')
      .execute();
    const lines = refs.map(({ oid, name }) => `${oid} ${name}\n`);
    await writeFile(join(bare, 'packed-refs'), `# pack-refs with: sorted\n${lines.join('')}`);
    const packs = join(environment.directory, 'git', repositoryId, 'packs');
    for (const { pack_id } of await environment.db
      .selectFrom('git_packs')
      .select('pack_id')
      .where('repository_id', '=', repositoryId)
      .execute()) {
      for (const kind of ['pack', 'idx'])
        await symlink(join(packs, `${pack_id}.${kind}`), join(bare, 'objects', 'pack', `pack-${pack_id}.${kind}`));
    }
    const { code, output } = await run('git', ['-C', bare, 'fsck', '--full', '--strict', '--no-dangling', '--no-progress']);
    return code === 0 ? [] : [`git fsck of ${repositoryId}: ${output.trim()}`];
  } finally {
    await rm(bare, { recursive: true, force: true });
  }
}
