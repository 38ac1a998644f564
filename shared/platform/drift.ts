/**
 * Port: what somebody else than the platform has changed or deleted of what the platform made. Only platforms whose objects others can
 * change have it. The driver reports whose objects differ; core puts them back from the database.
 */
import type { AppId, TenantId } from '#shared/ids.ts';

/** Whose objects differ: those of an app, those that all apps of a tenant share, or those of a host's certificate. */
export type DriftTarget =
  | { readonly of: 'app'; readonly appId: AppId }
  | { readonly of: 'tenant'; readonly tenantId: TenantId }
  | { readonly of: 'certificate'; readonly host: string };

/** The verbs of drift. */
export interface Drift {
  /**
   * Reports a target about a second after somebody has changed or deleted an object of it; several changes of a second are one report.
   * An object that is changed again and again is reported less and less often, at last every ten minutes. What the platform itself
   * writes or deletes is not reported. Ends with the signal.
   *
   * Kubernetes: watches all kinds that the driver creates, in all namespaces, by the label of the platform.
   */
  watchDrift(signal: AbortSignal): AsyncIterable<DriftTarget>;
  /**
   * Apps that have objects on the platform, also apps that the database does not know. Resolves once all objects are known.
   *
   * Kubernetes: by the label `app-id` of the objects that are watched.
   */
  listAppIds(signal: AbortSignal): Promise<readonly AppId[]>;
}
