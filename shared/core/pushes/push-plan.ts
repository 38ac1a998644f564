import type { RefChange } from '#shared/git/git-storage.ts';

/** What a pushed ref means for an app. */
export interface PlannedCommand {
  command: RefChange;
  /** `build`: the ref moves when its build succeeds. `store`: it moves at once. */
  action: 'build' | 'store' | 'delete-branch' | 'refuse';
  /** Short branch name, '' for what is no branch. */
  branch: string;
  reason?: string;
}

export interface PushPlan {
  commands: readonly PlannedCommand[];
  /** Lines for the person pushing. */
  hints: readonly string[];
}

const branchPrefix = 'refs/heads/';
/** `git push --all` must not start an environment for each of fifty branches. */
const mostPreviews = 3;

/** @param deployBranch the branch whose pushes go live, as 'main' */
export function planPush(commands: readonly RefChange[], deployBranch: string): PushPlan {
  const isPreview = (command: RefChange): boolean =>
    command.newOid !== undefined && command.name.startsWith(branchPrefix) && command.name !== branchPrefix + deployBranch;
  const tooMany = commands.filter(isPreview).length > mostPreviews;
  const hints = tooMany
    ? [
        ` !     Only ${deployBranch} is built: this push has more than ${mostPreviews} other branches. Push one alone to get its preview.`,
      ]
    : [];
  const planned = commands.map((command): PlannedCommand => {
    const branch = command.name.startsWith(branchPrefix) ? command.name.slice(branchPrefix.length) : '';
    if (branch === '') return { command, action: 'store', branch };
    if (command.newOid === undefined) {
      return branch === deployBranch
        ? { command, action: 'refuse', branch, reason: `${branch} is what the app is deployed from; it cannot be deleted` }
        : { command, action: 'delete-branch', branch };
    }
    return { command, action: branch !== deployBranch && tooMany ? 'store' : 'build', branch };
  });
  return { commands: planned, hints };
}
