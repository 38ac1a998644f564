import { afterEach, describe, expect, it } from 'vitest';
import type { BuildSpec } from '#shared/platform/builds.ts';
import { createInProcessBuilds, type InProcessBuilds, type RunBuild } from '#shared/platform/in-process-builds.ts';
import { buildSpec, buildToEnd, sourceOf, watchToEnd } from '#shared/platform/testing/build-specs.ts';

describe('builds in this process', () => {
  let builds: InProcessBuilds;
  afterEach(() => builds.stop());

  const source = sourceOf({});
  const image = { status: 'succeeded', imageUrl: 'fake://a', digest: 'a', processes: {}, builder: 'fake' } as const;
  const untilAborted: RunBuild = (_spec, _line, signal) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });

  it('run so many at once and the others in order, where a canceled one leaves its place', async () => {
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    const runBuild: RunBuild = (spec) => {
      begun.push(spec.appName);
      return new Promise((resolve) => ends.set(spec.appName, () => resolve(image)));
    };
    builds = createInProcessBuilds({ runBuild, atOnce: 2 });
    const specs = ['one', 'two', 'three', 'four'].map((appName) => buildSpec(source, { appName }));
    for (const spec of specs) await builds.startBuild(spec);
    await expect.poll(() => begun).toEqual(['one', 'two']);
    const [one, , three, four] = specs as [BuildSpec, BuildSpec, BuildSpec, BuildSpec];
    await builds.cancelBuild(three.buildId);
    expect(await watchToEnd(builds, three.buildId)).toEqual({ outcome: { status: 'canceled' }, seconds: 0, lines: [] });
    ends.get('one')?.();
    expect((await watchToEnd(builds, one.buildId)).outcome).toEqual(image);
    await expect.poll(() => begun).toEqual(['one', 'two', 'four']);
    for (const end of ends.values()) end();
    expect((await watchToEnd(builds, four.buildId)).outcome).toEqual(image);
  });

  it.each([
    [60, 'The build took longer than 1 minute and was stopped.'],
    [90, 'The build took longer than 90 seconds and was stopped.'],
    [120, 'The build took longer than 2 minutes and was stopped.'],
  ])('are stopped after their time, whatever they say then: %i seconds', async (timeoutSeconds, cause) => {
    const runBuild: RunBuild = async (spec, line, signal) => {
      await untilAborted(spec, line, signal).catch(() => undefined);
      throw new Error('killed');
    };
    builds = createInProcessBuilds({ runBuild, atOnce: 1, timeout: () => AbortSignal.timeout(1) });
    const { outcome } = await buildToEnd(builds, buildSpec(source, { timeoutSeconds }));
    expect(outcome).toEqual({ status: 'failed', cause });
  });

  it('report an error of their own to every watcher, present and later', async () => {
    builds = createInProcessBuilds({ runBuild: () => Promise.reject(new Error('no disk')), atOnce: 1 });
    const spec = buildSpec(source);
    await expect(buildToEnd(builds, spec)).rejects.toThrow('no disk');
    await expect(watchToEnd(builds, spec.buildId)).rejects.toThrow('no disk');
  });

  it('are lost when the process stops, once nothing of them runs any more, and none is started then', async () => {
    let running = 0;
    const runBuild: RunBuild = async (...build) => {
      running += 1;
      return untilAborted(...build).finally(() => (running -= 1));
    };
    builds = createInProcessBuilds({ runBuild, atOnce: 1 });
    const [one, waiting] = [buildSpec(source), buildSpec(source)];
    await builds.startBuild(one);
    await builds.startBuild(waiting);
    await expect.poll(() => running).toBe(1);
    const watched = Promise.all([one, waiting].map(({ buildId }) => watchToEnd(builds, buildId)));
    await builds.stop();
    expect(running).toBe(0);
    expect((await watched).map(({ outcome }) => outcome.status)).toEqual(['lost', 'lost']);
    await expect(builds.startBuild(buildSpec(source))).rejects.toThrow('stopping');
  });
});
