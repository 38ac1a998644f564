/** Commits of an app's repository and their files: what a person wants to see of a release. */
import type { Caller } from '#shared/core/accounts/principals.ts';
import type { CommitFacts, Comparison, DirectoryEntry, FileContent } from '#shared/git/git-storage.ts';

/** A directory with its entries, or a file. */
export type PathView =
  | { kind: 'directory'; path: string; commit: string; entries: readonly DirectoryEntry[] }
  | (FileContent & { path: string; commit: string });

/**
 * Reads the repository here, which for an app with a source elsewhere is a copy of what was built. A revision is a branch, a tag or an
 * id of 40 hex digits. `not_found` for an app, a revision or a path that does not exist.
 */
export interface Commits {
  readCommit(caller: Caller, app: string, revision: string): Promise<CommitFacts>;
  /** @param path '/'-separated; '' for the root */
  readPath(caller: Caller, app: string, revision: string, path: string): Promise<PathView>;
  /** What `head` has and `base` does not. */
  compare(caller: Caller, app: string, base: string, head: string): Promise<Comparison>;
}
