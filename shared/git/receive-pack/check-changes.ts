import type { RefChange } from '#shared/git/git-storage.ts';
import type { Inspection } from '#shared/git/object-graph/inspect-objects.ts';
import { isWritableRef, refNameProblem } from '#shared/git/refs/ref-name.ts';
import { RefNames } from '#shared/git/refs/ref-name-set.ts';
import type { ObjectId } from '#shared/ids.ts';

/** What the check of a push's changes depends on. */
export interface ChangeChecks {
  /** Refs of those names as they are now, and all that could stand in their way. */
  current: ReadonlyMap<string, ObjectId>;
  /** The new tips, by id; undefined for what is neither in the pack nor in the repository. */
  inspected: ReadonlyMap<ObjectId, Inspection | undefined>;
  /** Refs the repository may still get. */
  room: number;
}

/** What is wrong with each change, told by name; nothing for a sound one. */
export function checkChanges(
  changes: readonly RefChange[],
  { current, inspected, room }: ChangeChecks,
): ReadonlyMap<string, string> {
  const problems = new Map<string, string>();
  const gone = new Set(changes.flatMap(({ name, newOid }) => (newOid === undefined && current.has(name) ? name : [])));
  const names = new RefNames(
    [...current.keys()].filter((name) => !gone.has(name)),
    changes.map(({ name }) => name),
  );
  const most = names.size + gone.size + room;
  for (const change of changes) {
    const problem = staleProblem(change, current) ?? tipProblem(change, inspected) ?? placeProblem(change, names, most);
    if (problem !== undefined) problems.set(change.name, problem);
    else if (change.newOid !== undefined) names.add(change.name);
  }
  return problems;
}

/** What keeps a ref of this name from being pushed at all. */
export function nameProblem(name: string): string | undefined {
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

function placeProblem({ name, newOid, oldOid }: RefChange, names: RefNames, most: number): string | undefined {
  if (newOid === undefined || oldOid !== undefined) return undefined;
  const conflict = names.conflictWith(name);
  if (conflict !== undefined) return `'${conflict}' exists; cannot create '${name}'`;
  return names.size >= most ? 'the repository has as many refs as it may have; delete some first' : undefined;
}
