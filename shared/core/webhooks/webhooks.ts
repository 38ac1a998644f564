/** Deliveries of git hosts: the nouns, and what entry points may ask of them. */
import type { Caller } from '#shared/core/accounts/principals.ts';

/** A delivery as it came. */
export interface Delivery {
  /** By lower-case name. */
  header(name: string): string | undefined;
  body: Uint8Array<ArrayBuffer>;
  /** The app that the webhook was made for; undefined for the operator's own, which speaks for all apps. */
  appId: string | undefined;
}

export interface DeliveryResult {
  /** 'accepted': the git host could not be asked yet, and will be asked again. */
  outcome: 'started' | 'removed' | 'ignored' | 'replayed' | 'accepted';
  /** For the delivery log of the git host. Tells nothing of apps that the sender need not know. */
  message: string;
}

/** A delivery about an app, as its owner sees it. */
export interface ReceivedDelivery {
  provider: string;
  /** As the provider names it; '' when it does not. */
  event: string;
  /** By which the git host lists it. */
  deliveryId: string;
  /** 'refused': it was answered with an error. */
  outcome: DeliveryResult['outcome'] | 'refused';
  message: string;
  receivedAt: Date;
}

export interface Webhooks {
  /** The last deliveries about an app that were signed right, newest first, at most 20. `forbidden` to viewers. */
  listDeliveries(caller: Caller, app: string): Promise<readonly ReceivedDelivery[]>;
  /** To be asked before a body is read: `forbidden` when webhooks are off, `unauthorized` for what no body could be signed by. */
  checkHeaders(header: Delivery['header'], appId: string | undefined): Promise<void>;
  /** In the order of SPEC.md §4.4. `unauthorized` for a wrong signature, `not_found` when no app has the repository. */
  receive(delivery: Delivery): Promise<DeliveryResult>;
}
