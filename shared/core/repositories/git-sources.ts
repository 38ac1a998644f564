/** The git source of an app: the noun, and what entry points may ask of it. */
import type { Caller } from '#shared/core/accounts/principals.ts';

export interface GitSource {
  url: string | null;
  branch: string;
  /** What to enter at the git host; null while the operator has not set PAAS_WEBHOOK_SECRET. */
  webhook: { url: string; secret: string } | null;
  /** To be added at the git host when `url` is an SSH address; null for others. */
  deployKey: string | null;
}

export interface GitSources {
  /** For developers and above: it holds a secret. */
  readGitSource(caller: Caller, app: string): Promise<GitSource>;
}
