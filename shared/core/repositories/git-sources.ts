/** The git source of an app: the noun, and the interface that entry points use. */
import type { Caller } from '#shared/core/accounts/principals.ts';
import type { App } from '#shared/core/apps/apps.ts';

export interface GitSource {
  url: string | null;
  branch: string;
  /** To be entered at the git host; null while the operator has not set PAAS_WEBHOOK_SECRET. */
  webhook: { url: string; secret: string } | null;
  /** Public SSH key, to be added at the git host when `url` is an SSH address; null otherwise. */
  deployKey: string | null;
  /** Whether there is a token for the host of `url`. It is never shown. */
  hasToken: boolean;
}

export interface GitSources {
  /** `forbidden` to viewers: it contains a secret. */
  readGitSource(caller: Caller, app: string): Promise<GitSource>;
  /**
   * @param source `url` null: none; `token`: null removes it, left out it stays for the same host; `branch` left out: the default branch of the repository, or as it is when the git
   * host does not say
   * @throws AppError `validation_failed` when a given token cannot read the repository
   */
  setGitSource(
    caller: Caller,
    app: string,
    source: { url: string | null; branch?: string | undefined; token?: string | null | undefined },
  ): Promise<App>;
}
