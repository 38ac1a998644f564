/**
 * Port: the build cache volume of each app. Its limit is 5 Gi (SPEC.md §8).
 *
 * Kubernetes: a PersistentVolumeClaim `build-cache-<app_id>` in the namespace `paas-build`, ReadWriteOnce, of the default
 * storage class.
 */
import type { AppId } from '#shared/ids.ts';

export interface BuildCaches {
  /**
   * Creates the app's volume if it is missing. `created`: this very call has created it. `deleting`: the one before is
   * still being deleted, so nothing was created; ask again until it is gone.
   *
   * Kubernetes: creates the claim; 409 means `existed`, or `deleting` when that claim has a `deletionTimestamp`.
   */
  ensureCache(appId: AppId): Promise<{ state: 'created' | 'existed' | 'deleting' }>;
  /**
   * Begins to delete the volume, which may take time: until it is gone `readCache` says `deleting`. False when there was
   * none, or it is being deleted already.
   *
   * Kubernetes: deletes the claim. It stays Terminating while a pod refers to it, even one that has ended, so the app's
   * ended PipelineRuns are deleted first.
   */
  deleteCache(appId: AppId): Promise<boolean>;
  /**
   * Undefined when there is none. `usedBytes` is undefined where the platform does not know.
   *
   * Kubernetes: reads the claim. What is used is known only to a pod that mounts it, so it is not reported.
   */
  readCache(appId: AppId): Promise<{ state: 'ready' | 'deleting'; usedBytes?: number } | undefined>;
}
