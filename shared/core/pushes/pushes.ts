/**
 * Git repositories of apps as pushes and fetches see them.
 * A method that takes a principal throws `not_found` for what the principal's tenant does not own and `forbidden` for what
 * the role does not allow. `app` is an id or a name; ids take precedence.
 */
import type { Principal } from '#shared/core/accounts/principals.ts';
import type { ApplyPush, GitRepository } from '#shared/git/git-storage.ts';
import type { AppId } from '#shared/ids.ts';

/** A repository the principal may use, opened by `git-upload-pack` or `git-receive-pack`. */
export interface OpenedRepository extends GitRepository {
  appId: AppId;
  appName: string;
  /** What HEAD points to: the branch that is deployed, as 'refs/heads/main'. */
  headRef: string;
  /** What a push to it means. */
  applyPush: ApplyPush;
}

export interface Pushes {
  /** `not_found` alike for "no such app" and "not yours"; `forbidden` for a viewer who pushes. */
  openRepository(principal: Principal, appName: string, access: 'read' | 'write'): Promise<OpenedRepository>;
}
