import { afterAll, beforeAll } from 'vitest';
import { newUuid } from '#shared/ids.ts';
import { describeBuildCaches } from '#shared/platform/contract/build-caches.ts';
import { buildSpec, describeBuildRunner, openFiles, unaborted } from '#shared/platform/contract/build-runner.ts';
import { describeImages } from '#shared/platform/contract/images.ts';
import { openTestBuilds, type TestBuilds } from '#test/support/builds/test-builds.ts';

let ground: TestBuilds;
beforeAll(async () => {
  ground = await openTestBuilds();
});
afterAll(() => ground.stop());

const packageJson = (build: string): string => JSON.stringify({ scripts: { build, start: 'node server.js' } });

describeBuildCaches('local', async () => ground.caches);

describeBuildRunner('local', async () => ({
  ...ground,
  sources: {
    failing: openFiles({ 'package.json': packageJson('node -e "process.exit(3)"') }),
    endless: openFiles({ 'package.json': packageJson('echo started; sleep 600') }),
  },
  stop: async () => undefined,
}));

describeImages('local', async () => ({
  images: ground.images,
  async makeImage(appId) {
    const outcome = await ground.builds.runBuild(
      buildSpec(openFiles({ Procfile: `web: ${newUuid()}` }), { appId }),
      () => undefined,
      unaborted,
    );
    if (outcome.status === 'failed') throw new Error(outcome.cause);
    return outcome.imageUrl;
  },
  stop: async () => undefined,
}));
