import type { ObjectId } from '#shared/ids.ts';

/** What a delivery says about a branch. It is only a hint: the git host is asked. */
export interface BranchHint {
  branch: string;
  /** Null when the branch was deleted. */
  commit: string | null;
  /** The message of the commit asks for no build. */
  skipsBuild: boolean;
}

/** What is known of a repository. */
export interface SourceFacts {
  /** Commits by branch, as the git host just answered. */
  tips: ReadonlyMap<string, ObjectId>;
  /** As it answered the time before; undefined the first time. */
  seen: ReadonlyMap<string, ObjectId> | undefined;
  hints: readonly BranchHint[];
}

export interface SourceMoves {
  /** Branches to build, unless their commit is built already. `hinted`: one whose build failed is built again. */
  build: { branch: string; commit: ObjectId; hinted: boolean }[];
  /** Branches that are gone at the git host. */
  gone: string[];
  /** Branches that deliveries named and for which nothing is to be done, with the reason. */
  unchanged: Map<string, string>;
  /** Whether a delivery named a commit that the git host does not show: it may still be on its way through the host's caches. */
  isBehind: boolean;
}

/**
 * What to build and what to remove. Branches that nobody has named are new when they differ from the answer before; at the first
 * answer only named branches count. So a delivery that was lost is made up for, and a delivery that is repeated changes
 * nothing.
 */
export function planSourceMoves({ tips, seen, hints }: SourceFacts): SourceMoves {
  const moves: SourceMoves = { build: [], gone: [], unchanged: new Map(), isBehind: false };
  const latest = new Map(hints.map((hint) => [hint.branch, hint]));
  for (const [branch, commit] of tips) {
    const hint = latest.get(branch);
    if (hint?.commit === null) moves.unchanged.set(branch, `The git host still has ${branch}.`);
    else if (hint?.skipsBuild === true && hint.commit === commit)
      moves.unchanged.set(branch, `The message of ${commit.slice(0, 8)} asks for no build.`);
    else if (hint !== undefined || (seen !== undefined && seen.get(branch) !== commit))
      moves.build.push({ branch, commit, hinted: hint !== undefined });
  }
  for (const branch of new Set([...(seen?.keys() ?? []), ...latest.keys()])) {
    if (tips.has(branch)) continue;
    if (seen?.has(branch) === true || latest.get(branch)?.commit === null) moves.gone.push(branch);
    else moves.unchanged.set(branch, `The git host has no branch ${branch}.`);
  }
  moves.isBehind = [...latest.values()].some(({ branch, commit }) => commit !== null && tips.get(branch) !== commit);
  return moves;
}
