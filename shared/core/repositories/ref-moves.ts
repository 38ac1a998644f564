import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/db.ts';
import type { RefChange } from '#shared/git/git-storage.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/** Why a push moves nothing whose ref has moved to where it would lose commits: users see it. */
export const movedMessage = 'The branch moved while this push waited. Run `git pull` (fetch first), then push again.';

/** Where a push wants a ref to be. `null` stands for "does not exist". */
export interface RefMove {
  name: string;
  /** As the client saw it. */
  from: ObjectId | null;
  to: ObjectId | null;
}

/**
 * The change from where a ref is now to where a push wants it. Another push may have moved the ref during the build: that
 * is accepted as long as the other push loses no commits. Undefined when it would.
 */
async function rebase(
  { git }: Context,
  repositoryId: RepositoryId,
  move: RefMove,
  current: ObjectId | undefined,
): Promise<RefChange | undefined> {
  const change = { name: move.name, oldOid: current, newOid: move.to ?? undefined };
  if (current === (move.from ?? undefined) || current === move.to) return change;
  if (current === undefined || move.to === null) return undefined;
  return (await git.reader.isAncestor(repositoryId, current, move.to)) ? change : undefined;
}

/** Whether `moveRefs` would succeed now: asked before a build or a rollout, which would be in vain otherwise. */
export async function canMoveRefs(
  context: Context,
  repositoryId: RepositoryId,
  moves: readonly RefMove[] | null,
): Promise<boolean> {
  return (await rebaseAll(context, repositoryId, moves ?? [])) !== undefined;
}

/**
 * Moves all refs or none, in the caller's transaction. False when a ref has moved to where it would lose commits. It uses
 * a second connection only where a ref has moved meanwhile: if every transaction needed one, a pool whose connections are
 * all in transactions would wait forever.
 */
export async function moveRefs(
  context: Context,
  trx: Db,
  repositoryId: RepositoryId,
  moves: readonly RefMove[] | null,
): Promise<boolean> {
  const wanted = (moves ?? []).map(({ name, from, to }) => ({ name, oldOid: from ?? undefined, newOid: to ?? undefined }));
  if (wanted.length === 0 || (await context.git.refs.compareAndSwap(trx, repositoryId, wanted))) return true;
  const rebased = await rebaseAll(context, repositoryId, moves ?? []);
  if (rebased === undefined) return false;
  const changes = rebased.filter(({ oldOid, newOid }) => oldOid !== newOid);
  return changes.length === 0 || context.git.refs.compareAndSwap(trx, repositoryId, changes);
}

async function rebaseAll(
  context: Context,
  repositoryId: RepositoryId,
  moves: readonly RefMove[],
): Promise<readonly RefChange[] | undefined> {
  const names = moves.map(({ name }) => name);
  const current = names.length === 0 ? new Map<string, ObjectId>() : await context.git.refs.readRefs(repositoryId, names);
  const changes: RefChange[] = [];
  for (const move of moves) {
    const change = await rebase(context, repositoryId, move, current.get(move.name));
    if (change === undefined) return undefined;
    changes.push(change);
  }
  return changes;
}
