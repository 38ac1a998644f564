import type { AppId } from '#shared/ids.ts';
import type { BuildCaches } from '#shared/platform/build-caches.ts';

/** Volumes that are nothing but the fact that they exist. */
export function createFakeBuildCaches(): BuildCaches {
  const caches = new Set<AppId>();
  return {
    async ensureCache(appId) {
      const existed = caches.has(appId);
      caches.add(appId);
      return { existed };
    },
    deleteCache: async (appId) => caches.delete(appId),
    readCache: async (appId) => (caches.has(appId) ? { usedBytes: 0 } : undefined),
  };
}
