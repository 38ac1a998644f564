import { expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { describeBuildCaches } from '#shared/platform/contract/build-caches.ts';
import { describeBuilds } from '#shared/platform/contract/builds.ts';
import { describeImages } from '#shared/platform/contract/images.ts';
import { buildSpec, buildToEnd, sourceOf } from '#shared/platform/testing/build-specs.ts';
import { createFakeBuildCaches } from './build-caches.ts';
import { createFakeBuilds } from './builds.ts';
import { createFakeImages } from './images.ts';

describeBuildCaches('fake', async () => createFakeBuildCaches());

it('a volume that is being deleted is neither created nor deleted again, until it is gone', async () => {
  const caches = createFakeBuildCaches();
  const appId = newUuid<AppId>();
  await caches.ensureCache(appId);
  const finish = caches.holdDeletions();
  expect(await caches.deleteCache(appId)).toBe(true);
  expect(await caches.deleteCache(appId)).toBe(false);
  expect(await caches.readCache(appId)).toMatchObject({ state: 'deleting' });
  expect(await caches.ensureCache(appId)).toEqual({ state: 'deleting' });
  finish();
  expect(await caches.ensureCache(appId)).toEqual({ state: 'created' });
});

describeBuilds('fake', async () => {
  const images = createFakeImages();
  const builds = createFakeBuilds({
    images,
    step: async (_spec, files, line) => {
      if (files.has('failing')) return '`npm run build` exited with code 1.';
      if (!files.has('endless')) return undefined;
      line('started');
      return new Promise(() => undefined);
    },
  });
  return {
    builds,
    images,
    caches: createFakeBuildCaches(),
    sources: { failing: sourceOf({ Procfile: 'web: a', failing: '' }), endless: sourceOf({ Procfile: 'web: a', endless: '' }) },
    stop: () => builds.stop(),
  };
});

describeImages('fake', async () => {
  const images = createFakeImages();
  const builds = createFakeBuilds({ images });
  return {
    images,
    async makeImage(appId) {
      const { outcome } = await buildToEnd(builds, buildSpec(sourceOf({ Procfile: `web: ${newUuid()}` }), { appId }));
      if (outcome.status !== 'succeeded') throw new Error(JSON.stringify(outcome));
      return outcome.imageUrl;
    },
    stop: () => builds.stop(),
  };
});
