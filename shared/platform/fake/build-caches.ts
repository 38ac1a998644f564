import type { AppId } from '#shared/ids.ts';
import type { BuildCaches } from '#shared/platform/build-caches.ts';

export interface FakeBuildCaches extends BuildCaches {
  /** From now on deletions take time: until the function is called that this returns. */
  holdDeletions(): () => void;
}

/** Volumes that are nothing but the fact that they exist. */
export function createFakeBuildCaches(): FakeBuildCaches {
  const states = new Map<AppId, 'ready' | 'deleting'>();
  let paused = false;
  return {
    async ensureCache(appId) {
      const state = states.get(appId);
      if (state === undefined) states.set(appId, 'ready');
      return { state: state === undefined ? 'created' : state === 'ready' ? 'existed' : 'deleting' };
    },
    async deleteCache(appId) {
      if (states.get(appId) !== 'ready') return false;
      if (paused) states.set(appId, 'deleting');
      else states.delete(appId);
      return true;
    },
    async readCache(appId) {
      const state = states.get(appId);
      return state === undefined ? undefined : { state, usedBytes: 0 };
    },
    holdDeletions() {
      paused = true;
      return () => {
        paused = false;
        for (const [appId, state] of states) if (state === 'deleting') states.delete(appId);
      };
    },
  };
}
