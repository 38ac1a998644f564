import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/schema.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

const retrySeconds = 60 * 60;

/** After a push, in its transaction: its packs are joined when they are many, and what it may have made unreachable is looked for. */
export async function enqueueMaintenance(context: Context, trx: Db, repositoryId: RepositoryId): Promise<void> {
  const { git, jobs } = context;
  if (await git.maintenance.needsRepack(trx, repositoryId))
    await jobs.enqueue(trx, 'repack', { repositoryId }, { key: `repack:${repositoryId}`, queue: queueOf(repositoryId) });
  await enqueueCollection(context, trx, repositoryId, limits.packs.collectSeconds);
}

/** At most one a day for each repository, however many pushes there are: one that waits keeps its time. */
async function enqueueCollection({ jobs, clock }: Context, db: Db, repositoryId: RepositoryId, seconds: number): Promise<void> {
  const runAt = new Date(clock.now().getTime() + seconds * 1000);
  const key = `collect-garbage:${repositoryId}`;
  await jobs.enqueue(db, 'collect-garbage', { repositoryId }, { key, queue: queueOf(repositoryId), runAt, keepsTime: true });
}

function queueOf(repositoryId: RepositoryId): string {
  return `packs:${repositoryId}`;
}

/** Harmless again; what another process has done meanwhile stands. */
export async function runRepackJob({ git }: Context, repositoryId: RepositoryId, stopping: AbortSignal): Promise<void> {
  await git.maintenance.repack(repositoryId, stopping);
}

/** Harmless again. */
export async function runCollectGarbageJob(context: Context, repositoryId: RepositoryId, stopping: AbortSignal): Promise<void> {
  const { db, git, jobs } = context;
  const facts = await git.maintenance.collectGarbage(repositoryId, () => readRoots(db, repositoryId), stopping);
  if (facts === undefined) return await enqueueCollection(context, db, repositoryId, retrySeconds);
  if (facts.nextAt === undefined) return undefined;
  const key = `remove-garbage:${repositoryId}`;
  return await jobs.enqueue(db, 'collect-garbage', { repositoryId }, { key, queue: queueOf(repositoryId), runAt: facts.nextAt });
}

/**
 * Commits that stay though no ref may reach them: those of releases, to be built again from, and those of builds that are
 * not over, with the refs that are to move there.
 */
async function readRoots(db: Db, repositoryId: RepositoryId): Promise<ObjectId[]> {
  const apps = db.selectFrom('apps').select('id').where('repository_id', '=', repositoryId);
  // Builds first: one that ends in between has left its commit to a release, or to a ref, which are read later.
  const builds = await db
    .selectFrom('builds')
    .select(['commit', 'ref_changes'])
    .where('app_id', 'in', apps)
    .where('status', 'in', ['queued', 'running'])
    .execute();
  const releases = await db
    .selectFrom('releases')
    .select('commit')
    .distinct()
    .where('app_id', 'in', apps)
    .where('commit', 'is not', null)
    .execute();
  const named = [
    ...builds.flatMap(({ commit, ref_changes }) => [commit, ...(ref_changes ?? []).map(({ to }) => to)]),
    ...releases.map(({ commit }) => commit),
  ];
  return [...new Set(named.filter((oid) => oid !== null))] as ObjectId[];
}
