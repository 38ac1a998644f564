/** Part of services.ts: what the doors may ask about git hosts elsewhere. */
import type { Principal } from '#shared/core/principals.ts';

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
  readGitSource(principal: Principal, app: string): Promise<GitSource>;
}

export interface Delivery {
  /** By lower-case name. */
  header(name: string): string | undefined;
  body: Uint8Array<ArrayBuffer>;
  /** The app that the webhook was made for; undefined for the operator's own, which speaks for all apps. */
  appId: string | undefined;
}

export interface DeliveryResult {
  outcome: 'started' | 'removed' | 'ignored' | 'replayed';
  /** For the delivery log of the git host. Tells nothing of apps that the sender need not know. */
  message: string;
}

export interface Webhooks {
  /** To be asked before a body is read: `forbidden` when webhooks are off, `unauthorized` for what no body could be signed by. */
  checkHeaders(header: Delivery['header'], appId: string | undefined): Promise<void>;
  /** In the order of SPEC.md §4.4. `unauthorized` for a wrong signature, `not_found` when no app has the repository. */
  receive(delivery: Delivery): Promise<DeliveryResult>;
}
