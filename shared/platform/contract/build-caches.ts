import { describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import type { BuildCaches } from '#shared/platform/build-caches.ts';

const patience = { timeout: 20_000 };

/** What every driver of build caches does. The volumes are of apps that the suite makes up. */
export function describeBuildCaches(name: string, open: () => Promise<BuildCaches>): void {
  describe(`build caches contract: ${name}`, () => {
    it('reports that it created a volume exactly once, however many ask at the same time', async () => {
      const caches = await open();
      const appId = newUuid<AppId>();
      const answers = await Promise.all(Array.from({ length: 8 }, () => caches.ensureCache(appId)));
      expect(answers.filter(({ state }) => state === 'created')).toHaveLength(1);
      expect(answers.filter(({ state }) => state === 'existed')).toHaveLength(7);
      expect(await caches.ensureCache(appId)).toEqual({ state: 'existed' });
    });

    it('reports whether there was anything to delete, once, and creates a new one when that is gone', async () => {
      const caches = await open();
      const appId = newUuid<AppId>();
      expect(await caches.deleteCache(appId)).toBe(false);
      await caches.ensureCache(appId);
      expect(await caches.deleteCache(appId)).toBe(true);
      expect(await caches.deleteCache(appId)).toBe(false);
      await expect.poll(() => caches.readCache(appId), patience).toBeUndefined();
      expect(await caches.ensureCache(appId)).toEqual({ state: 'created' });
    });

    it('reads a volume that exists, and nothing of one that does not', async () => {
      const caches = await open();
      const appId = newUuid<AppId>();
      expect(await caches.readCache(appId)).toBeUndefined();
      await caches.ensureCache(appId);
      const read = await caches.readCache(appId);
      expect(read?.state).toBe('ready');
      expect(read?.usedBytes ?? 0).toBeGreaterThanOrEqual(0);
    });

    it("leaves other apps' volumes alone", async () => {
      const caches = await open();
      const [one, other] = [newUuid<AppId>(), newUuid<AppId>()];
      await caches.ensureCache(one);
      await caches.ensureCache(other);
      await caches.deleteCache(one);
      expect(await caches.ensureCache(other)).toEqual({ state: 'existed' });
    });
  });
}
