import type { Inspection } from '#shared/git/objects/history.ts';
import { conflictingRef, isWritableRef, refNameProblem } from '#shared/git/refs/ref-name.ts';
import type { Ref, RefChange } from '#shared/git/repository.ts';
import type { ObjectId } from '#shared/ids.ts';

/**
 * What is wrong with each change, told by name; nothing for a sound one.
 * @param refs as they are now
 * @param inspected the new tips, by id; undefined for what is neither in the pack nor in the repository
 * @param limit refs a repository may have
 */
export function checkChanges(
  changes: readonly RefChange[],
  refs: readonly Ref[],
  inspected: ReadonlyMap<ObjectId, Inspection | undefined>,
  limit: number,
): ReadonlyMap<string, string> {
  const problems = new Map<string, string>();
  const current = new Map(refs.map(({ name, oid }) => [name, oid]));
  const names = new Set(current.keys());
  for (const { name, newOid } of changes) if (newOid === undefined) names.delete(name);
  for (const change of changes) {
    const problem =
      nameProblem(change) ?? staleProblem(change, current) ?? tipProblem(change, inspected) ?? placeProblem(change, names, limit);
    if (problem !== undefined) problems.set(change.name, problem);
    else if (change.newOid !== undefined) names.add(change.name);
  }
  return problems;
}

function nameProblem({ name }: RefChange): string | undefined {
  const problem = refNameProblem(name);
  if (problem !== undefined) return `funny refname: it ${problem}`;
  return isWritableRef(name) ? undefined : 'only branches, tags and notes can be pushed here';
}

/** Whoever lost a race has to see what won before trying again. */
function staleProblem({ name, oldOid }: RefChange, current: ReadonlyMap<string, ObjectId>): string | undefined {
  const now = current.get(name);
  if (now === oldOid) return undefined;
  if (now === undefined) return 'it does not exist here any more; fetch first';
  return oldOid === undefined ? 'it exists here already; fetch first' : 'somebody else has pushed in the meantime; fetch first';
}

function tipProblem({ name, newOid }: RefChange, inspected: ReadonlyMap<ObjectId, Inspection | undefined>): string | undefined {
  if (newOid === undefined) return undefined;
  const tip = inspected.get(newOid);
  if (tip === undefined) return 'missing necessary objects';
  return name.startsWith('refs/heads/') && tip.type !== 'commit'
    ? `a branch must point at a commit, and this is a ${tip.type}`
    : undefined;
}

function placeProblem({ name, newOid, oldOid }: RefChange, names: ReadonlySet<string>, limit: number): string | undefined {
  if (newOid === undefined || oldOid !== undefined) return undefined;
  const conflict = conflictingRef(name, names);
  if (conflict !== undefined) return `'${conflict}' exists; cannot create '${name}'`;
  return names.size >= limit ? `a repository may have ${limit} refs at most; delete some first` : undefined;
}
