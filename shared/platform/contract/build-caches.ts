import { describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import type { BuildCaches } from '#shared/platform/build-caches.ts';

/** What every cache of builds does. The volumes are of apps that the suite makes up. */
export function describeBuildCaches(name: string, open: () => Promise<BuildCaches>): void {
  describe(`build caches contract: ${name}`, () => {
    it('reports that a volume did not exist exactly once, however many ask at the same time', async () => {
      const caches = await open();
      const appId = newUuid<AppId>();
      const answers = await Promise.all(Array.from({ length: 8 }, () => caches.ensureCache(appId)));
      expect(answers.filter(({ existed }) => !existed)).toHaveLength(1);
      expect(await caches.ensureCache(appId)).toEqual({ existed: true });
    });

    it('says whether there was anything to delete, and starts anew afterwards', async () => {
      const caches = await open();
      const appId = newUuid<AppId>();
      expect(await caches.deleteCache(appId)).toBe(false);
      await caches.ensureCache(appId);
      expect(await caches.deleteCache(appId)).toBe(true);
      expect(await caches.deleteCache(appId)).toBe(false);
      expect(await caches.ensureCache(appId)).toEqual({ existed: false });
    });

    it('reads the use of a volume that is there, and nothing of one that is not', async () => {
      const caches = await open();
      const appId = newUuid<AppId>();
      expect(await caches.readCache(appId)).toBeUndefined();
      await caches.ensureCache(appId);
      expect((await caches.readCache(appId))?.usedBytes).toBeGreaterThanOrEqual(0);
    });

    it("leaves other apps' volumes alone", async () => {
      const caches = await open();
      const [one, other] = [newUuid<AppId>(), newUuid<AppId>()];
      await caches.ensureCache(one);
      await caches.ensureCache(other);
      await caches.deleteCache(one);
      expect(await caches.ensureCache(other)).toEqual({ existed: true });
    });
  });
}
