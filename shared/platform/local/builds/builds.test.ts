import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newUuid } from '#shared/ids.ts';
import { describeBuildCaches } from '#shared/platform/contract/build-caches.ts';
import { describeBuilds } from '#shared/platform/contract/builds.ts';
import { describeImages } from '#shared/platform/contract/images.ts';
import { buildSpec, buildToEnd, sourceOf } from '#shared/platform/testing/build-specs.ts';
import { openTestBuilds, type TestBuilds } from '#test/support/builds/test-builds.ts';

let local: TestBuilds;
beforeAll(async () => {
  local = await openTestBuilds();
});
afterAll(() => local.stop());

const packageJson = (build: string): string => JSON.stringify({ scripts: { build, start: 'node server.js' } });

describeBuildCaches('local', async () => local.caches);

describeBuilds('local', async () => ({
  ...local,
  sources: {
    failing: sourceOf({ 'package.json': packageJson('node -e "process.exit(3)"') }),
    endless: sourceOf({ 'package.json': packageJson('echo started; sleep 600') }),
  },
  stop: async () => undefined,
}));

describeImages('local', async () => ({
  images: local.images,
  async makeImage(appId) {
    const { outcome } = await buildToEnd(local.builds, buildSpec(sourceOf({ Procfile: `web: ${newUuid()}` }), { appId }));
    if (outcome.status !== 'succeeded') throw new Error(JSON.stringify(outcome));
    return outcome.imageUrl;
  },
  stop: async () => undefined,
}));

describe('a build on this machine', () => {
  it('says what it detects and which process types there are', async () => {
    const { lines, outcome } = await buildToEnd(local.builds, buildSpec(sourceOf({ Procfile: 'web: ./a\nworker: ./b\n' })));
    expect(lines).toContain('-----> Plain app detected (Procfile)');
    expect(lines).toContain('       Procfile declares types -> web, worker');
    expect(outcome).toMatchObject({ status: 'succeeded', builder: 'procfile' });
  });

  it('takes the commands of paas.yml, and says what the services of a compose file are here', async () => {
    const files = {
      'paas.yml': 'build: echo built > built.txt\nstart: ./a\nrelease: ./migrate\nprocesses: {worker: ./b}\n',
      'compose.yaml': 'services: {db: {image: postgres:17}}',
    };
    const { lines, outcome } = await buildToEnd(local.builds, buildSpec(sourceOf(files)));
    expect(lines).toContain('-----> Plain app detected (a start command)');
    expect(lines).toContain('         db (postgres) -> paas addons:create database');
    expect(lines).toContain('       echo built > built.txt');
    expect(outcome).toMatchObject({ status: 'succeeded', processes: { web: './a', worker: './b' }, releaseCommand: './migrate' });
  });

  it.each([
    [{ Procfile: 'web: a\nnonsense\n' }, /^Procfile line 2 is not "<type>: <command>": nonsense$/],
    [{ 'notes.txt': 'nothing' }, /^No language detected.*Procfile/],
  ])('names what is wrong with the source: %j', async (files, cause) => {
    const { outcome } = await buildToEnd(local.builds, buildSpec(sourceOf(files)));
    expect(outcome).toMatchObject({ status: 'failed', cause: expect.stringMatching(cause) });
  });
});

describe('an address that is none of this machine’s images', () => {
  it.each(['', 'slug://', 'slug://../../etc@sha256:00', `slug://${'0'.repeat(36)}@sha256:${'/'.repeat(64)}`])(
    'names no image, and leads nowhere: %s',
    async (url) => {
      expect(await local.images.imageExists(url)).toBe(false);
      expect(await local.images.deleteImage(url)).toBe(false);
    },
  );
});
