/** Port: the build cache volume of each app. */
import type { AppId } from '#shared/ids.ts';

export interface BuildCaches {
  /** Creates the app's 5 Gi cache volume if missing. `existed` decides Cold or Warm, so call it right before a build. */
  ensureCache(appId: AppId): Promise<{ existed: boolean }>;
  /** Deletes the volume. False when there was none. The next `ensureCache` reports `existed: false`. */
  deleteCache(appId: AppId): Promise<boolean>;
  /** Undefined when there is none. */
  readCache(appId: AppId): Promise<{ usedBytes: number } | undefined>;
}
