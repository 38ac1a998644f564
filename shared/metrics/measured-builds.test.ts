import { expect, it } from 'vitest';
import { measureBuilds } from '#shared/metrics/measured-builds.ts';
import { createFakeBuilds, type FakeBuildStep } from '#shared/platform/fake/builds.ts';
import { createFakeImages } from '#shared/platform/fake/images.ts';
import { buildSpec, buildToEnd, buildUntilStarted, sourceOf, watchToEnd } from '#shared/platform/testing/build-specs.ts';

it('observes how each build ends, and none that the platform lost or that a watcher left', async () => {
  const seen: string[] = [];
  const step: FakeBuildStep = async (_spec, files, line) => {
    if (files.has('broken')) throw new Error('a fault of the platform');
    if (files.has('failing')) return 'It does not compile.';
    if (!files.has('endless')) return undefined;
    line('started');
    return new Promise(() => undefined);
  };
  const fake = createFakeBuilds({ images: createFakeImages(), step });
  const builds = measureBuilds(fake, {
    observeBuild: ({ outcome, seconds }) => seen.push(`${outcome} ${seconds >= 0 && seconds < 30}`),
  });
  const source = (name: string) => sourceOf({ Procfile: 'web: a', [name]: '' });
  await buildToEnd(builds, buildSpec(source('good')));
  await buildToEnd(builds, buildSpec(source('failing')));
  await expect(buildToEnd(builds, buildSpec(source('broken')))).rejects.toThrow('a fault of the platform');
  const canceled = buildSpec(source('endless'));
  await buildUntilStarted(builds, canceled);
  await builds.cancelBuild(canceled.buildId);
  await watchToEnd(builds, canceled.buildId);
  const lost = buildSpec(source('endless'));
  await buildUntilStarted(builds, lost);
  await fake.loseBuild(lost.buildId);
  await watchToEnd(builds, lost.buildId);
  expect(seen).toEqual(['succeeded true', 'failed true', 'failed true', 'ended true']);
});
