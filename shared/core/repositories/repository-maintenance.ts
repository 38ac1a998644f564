import { readTenantOfRepository } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/db.ts';
import { addSeconds, secondsPerHour } from '#shared/durations.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';
import type { EnqueueOptions } from '#shared/jobs/jobs.ts';
import { limits } from '#shared/limits.ts';

/** How long a collection waits that found the repository busy. */
const retrySeconds = secondsPerHour;

/** Maintenance jobs of one repository run one after the other. */
async function optionsOf(db: Db, repositoryId: RepositoryId): Promise<EnqueueOptions> {
  return { queue: `packs:${repositoryId}`, tenant: await readTenantOfRepository(db, repositoryId) };
}

/** Lists commits that are needed though no ref may reach them. */
export type ListRetainedCommits = (db: Db, repositoryId: RepositoryId) => Promise<readonly ObjectId[]>;

/**
 * After a push or a fetch, in its transaction: joins the repository's packs when they are many, and looks a day later for
 * objects that nothing reaches any more.
 */
export async function enqueueMaintenance(context: Context, trx: Db, repositoryId: RepositoryId): Promise<void> {
  const { git, jobs } = context;
  if (await git.maintenance.needsRepack(trx, repositoryId)) {
    const options = { ...(await optionsOf(trx, repositoryId)), key: `repack:${repositoryId}` };
    await jobs.enqueue(trx, 'repack', { repositoryId }, options);
  }
  await enqueueCollection(context, trx, repositoryId, limits.packs.collectSeconds);
}

/** At most one waits for each repository, however many pushes there are: it keeps the time it was first given. */
async function enqueueCollection({ jobs, clock }: Context, db: Db, repositoryId: RepositoryId, seconds: number): Promise<void> {
  const runAt = addSeconds(clock.now(), seconds);
  const key = `collect-garbage:${repositoryId}`;
  const options = { ...(await optionsOf(db, repositoryId)), key, runAt, keepsTime: true };
  await jobs.enqueue(db, 'collect-garbage', { repositoryId }, options);
}

/** Joins packs. It may run again, and keeps what another process has done meanwhile. */
export async function runRepackJob({ git }: Context, repositoryId: RepositoryId, stopping: AbortSignal): Promise<void> {
  await git.maintenance.repack(repositoryId, stopping);
}

/** Collects unreachable objects; may run again. */
export async function runCollectGarbageJob(
  context: Context,
  repositoryId: RepositoryId,
  listRetainedCommits: ListRetainedCommits,
  stopping: AbortSignal,
): Promise<void> {
  const { db, git, jobs } = context;
  const readRoots = async (): Promise<ObjectId[]> => [...(await listRetainedCommits(db, repositoryId))];
  const facts = await git.maintenance.collectGarbage(repositoryId, readRoots, stopping);
  if (facts === undefined) return await enqueueCollection(context, db, repositoryId, retrySeconds);
  if (facts.nextAt === undefined) return undefined;
  const options = { ...(await optionsOf(db, repositoryId)), key: `remove-garbage:${repositoryId}`, runAt: facts.nextAt };
  return await jobs.enqueue(db, 'collect-garbage', { repositoryId }, options);
}
