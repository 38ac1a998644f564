import { listOpenBuildCommits } from '#shared/core/builds/builds-store.ts';
import { listReleasedCommits } from '#shared/core/releases/releases-store.ts';
import type { Db } from '#shared/database/db.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/**
 * Commits that garbage collection keeps though no ref may reach them: those of releases, which can be built again, and
 * those of builds that are not over, with the commits their refs are to move to.
 */
export async function listRetainedCommits(db: Db, repositoryId: RepositoryId): Promise<readonly ObjectId[]> {
  // Builds first: the commit of one that ends in between is then read with a release, or reached by a ref.
  const ofBuilds = await listOpenBuildCommits(db, repositoryId);
  const ofReleases = await listReleasedCommits(db, repositoryId);
  return [...new Set([...ofBuilds, ...ofReleases])];
}
