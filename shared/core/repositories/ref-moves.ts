import type { Context } from '#shared/core/context.ts';
import type { Db, RefMove } from '#shared/database/schema.ts';
import type { RefChange } from '#shared/git/git-storage.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/**
 * The change that brings a ref to where a push wants it, from where it is now. Between the push and the end of its
 * build another push may have moved the ref: that is fine as long as nothing of it is lost. Undefined when it would be.
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

/** Whether `moveRefs` would succeed now: asked before a build, to save the building. */
export async function canMoveRefs(
  context: Context,
  repositoryId: RepositoryId,
  moves: readonly RefMove[] | null,
): Promise<boolean> {
  return (await rebaseAll(context, repositoryId, moves ?? [])) !== undefined;
}

/**
 * All or none, in the caller's transaction. Only where a ref has moved meanwhile it asks on a connection of its own: a
 * transaction that always needed a second one would wait for ever once all are in transactions.
 */
export async function moveRefs(
  context: Context,
  trx: Db,
  repositoryId: RepositoryId,
  moves: readonly RefMove[] | null,
): Promise<boolean> {
  const asked = (moves ?? []).map(({ name, from, to }) => ({ name, oldOid: from ?? undefined, newOid: to ?? undefined }));
  if (asked.length === 0 || (await context.git.refs.compareAndSwap(trx, repositoryId, asked))) return true;
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
