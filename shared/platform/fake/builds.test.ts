import { newUuid } from '#shared/ids.ts';
import { describeBuildCaches } from '#shared/platform/contract/build-caches.ts';
import { buildSpec, describeBuildRunner, openFiles, unaborted } from '#shared/platform/contract/build-runner.ts';
import { describeImages } from '#shared/platform/contract/images.ts';
import { createFakeBuilds } from './builds.ts';

describeBuildCaches('memory', async () => createFakeBuilds().caches);

describeBuildRunner('memory', async () => ({
  ...createFakeBuilds(async (_spec, files, line) => {
    if (files.has('failing')) return '`npm run build` exited with code 1.';
    if (!files.has('endless')) return undefined;
    line('started');
    return new Promise(() => undefined);
  }),
  sources: { failing: openFiles({ Procfile: 'web: a', failing: '' }), endless: openFiles({ Procfile: 'web: a', endless: '' }) },
  stop: async () => undefined,
}));

describeImages('memory', async () => {
  const { builds, images } = createFakeBuilds();
  return {
    images,
    async makeImage(appId) {
      const outcome = await builds.runBuild(
        buildSpec(openFiles({ Procfile: `web: ${newUuid()}` }), { appId }),
        () => undefined,
        unaborted,
      );
      if (outcome.status === 'failed') throw new Error(outcome.cause);
      return outcome.imageUrl;
    },
    stop: async () => undefined,
  };
});
