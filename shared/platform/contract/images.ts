import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import type { Images } from '#shared/platform/images.ts';

export interface ImagesHarness {
  readonly images: Images;
  /** Builds something that differs from what it built before. @returns the image URL */
  makeImage(appId: AppId): Promise<string>;
  stop(): Promise<void>;
}

/** What every driver of images does. */
export function describeImages(name: string, start: () => Promise<ImagesHarness>): void {
  describe(`images contract: ${name}`, () => {
    let harness: ImagesHarness;
    beforeAll(async () => {
      harness = await start();
    });
    afterAll(() => harness?.stop());

    it('deletes one image and reports whether it existed', async () => {
      const appId = newUuid<AppId>();
      const [one, other] = [await harness.makeImage(appId), await harness.makeImage(appId)];
      expect(await harness.images.deleteImage(one)).toBe(true);
      expect(await harness.images.deleteImage(one)).toBe(false);
      expect(await harness.images.imageExists(one)).toBe(false);
      expect(await harness.images.imageExists(other)).toBe(true);
    });

    it("lists all of an app's images, and nobody else's", async () => {
      const [one, other] = [newUuid<AppId>(), newUuid<AppId>()];
      const urls = [await harness.makeImage(one), await harness.makeImage(one)];
      await harness.makeImage(other);
      expect((await harness.images.listImages(one)).toSorted()).toEqual(urls.toSorted());
      expect(await harness.images.listImages(newUuid())).toEqual([]);
    });

    it("deletes all of an app's images at once, and nobody else's", async () => {
      const [one, other] = [newUuid<AppId>(), newUuid<AppId>()];
      const urls = [await harness.makeImage(one), await harness.makeImage(one)];
      const kept = await harness.makeImage(other);
      expect(await harness.images.deleteImages(one)).toBe(true);
      expect(await harness.images.deleteImages(one)).toBe(false);
      expect(await Promise.all(urls.map((url) => harness.images.imageExists(url)))).toEqual([false, false]);
      expect(await harness.images.imageExists(kept)).toBe(true);
    });

    it.each(['', 'https://example.com/a.tar', 'nonsense', '../../etc/passwd'])(
      'knows nothing of what is not an address of its own: %s',
      async (url) => {
        expect(await harness.images.imageExists(url)).toBe(false);
        expect(await harness.images.deleteImage(url)).toBe(false);
      },
    );
  });
}
