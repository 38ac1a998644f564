import type { RefChange } from '#shared/git/git-storage.ts';
import type { Inspection } from '#shared/git/object-graph/inspect-objects.ts';
import { isWritableRef, refNameProblem } from '#shared/git/refs/ref-name.ts';
import { RefNameSet } from '#shared/git/refs/ref-name-set.ts';
import type { ObjectId } from '#shared/ids.ts';

/** What the check of a push's changes needs to know. */
export interface ChangeChecks {
  /** The current refs of those names, and all refs whose names could conflict with them. */
  current: ReadonlyMap<string, ObjectId>;
  /** The new tips, by id. Undefined for objects that are neither in the pack nor in the repository. */
  inspected: ReadonlyMap<ObjectId, Inspection | undefined>;
  /** How many more refs the repository may have. */
  room: number;
}

/** The reasons to reject changes, by ref name. Acceptable changes are left out. */
export function checkChanges(
  changes: readonly RefChange[],
  { current, inspected, room }: ChangeChecks,
): ReadonlyMap<string, string> {
  const problems = new Map<string, string>();
  const gone = new Set(changes.flatMap(({ name, newOid }) => (newOid === undefined && current.has(name) ? name : [])));
  const names = new RefNameSet(
    [...current.keys()].filter((name) => !gone.has(name)),
    changes.map(({ name }) => name),
  );
  const mostRefs = names.size + gone.size + room;
  for (const change of changes) {
    const problem = staleProblem(change, current) ?? tipProblem(change, inspected) ?? namespaceProblem(change, names, mostRefs);
    if (problem !== undefined) problems.set(change.name, problem);
    else if (change.newOid !== undefined) names.add(change.name);
  }
  return problems;
}

/** Why a ref of this name cannot be pushed at all; undefined when it can. */
export function nameProblem(name: string): string | undefined {
  const problem = refNameProblem(name);
  if (problem !== undefined) return `funny refname: it ${problem}`;
  return isWritableRef(name) ? undefined : 'only branches, tags and notes can be pushed here';
}

/** Whoever lost a race has to fetch the winner's commits before trying again. */
function staleProblem({ name, oldOid }: RefChange, current: ReadonlyMap<string, ObjectId>): string | undefined {
  const now = current.get(name);
  if (now === oldOid) return undefined;
  if (now === undefined) return 'it no longer exists here; fetch first';
  return oldOid === undefined ? 'it exists here already; fetch first' : 'somebody else pushed in the meantime; fetch first';
}

function tipProblem({ name, newOid }: RefChange, inspected: ReadonlyMap<ObjectId, Inspection | undefined>): string | undefined {
  if (newOid === undefined) return undefined;
  const tip = inspected.get(newOid);
  if (tip === undefined) return 'missing necessary objects';
  return name.startsWith('refs/heads/') && tip.type !== 'commit'
    ? `a branch must point at a commit, and this is a ${tip.type}`
    : undefined;
}

function namespaceProblem({ name, newOid, oldOid }: RefChange, names: RefNameSet, mostRefs: number): string | undefined {
  if (newOid === undefined || oldOid !== undefined) return undefined;
  const conflict = names.conflictWith(name);
  if (conflict !== undefined) return `'${conflict}' exists; cannot create '${name}'`;
  return names.size >= mostRefs ? 'the repository has the maximum number of refs; delete some first' : undefined;
}
