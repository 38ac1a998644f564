import { listOpenBuildCommits } from '#shared/core/builds/builds-store.ts';
import { listOpenDeployTargets } from '#shared/core/releases/deploys-store.ts';
import { listReleasedCommits } from '#shared/core/releases/releases-store.ts';
import type { Db } from '#shared/database/db.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/**
 * Commits that garbage collection keeps though no ref may reach them: those of releases, which can be built again, and
 * those of builds and deploys that are not over, with what their refs are to move to.
 */
export async function listRetainedCommits(db: Db, repositoryId: RepositoryId): Promise<readonly ObjectId[]> {
  // In the order in which a push passes through them: what ends in between is then read with the next, or reached by a ref.
  const ofBuilds = await listOpenBuildCommits(db, repositoryId);
  const ofDeploys = await listOpenDeployTargets(db, repositoryId);
  const ofReleases = await listReleasedCommits(db, repositoryId);
  return [...new Set([...ofBuilds, ...ofDeploys, ...ofReleases])];
}
