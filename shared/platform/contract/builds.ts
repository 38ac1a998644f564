import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuildId, newUuid } from '#shared/ids.ts';
import type { BuildCaches } from '#shared/platform/build-caches.ts';
import type { BuildEvent, Builds, SourceAccess } from '#shared/platform/builds.ts';
import type { Images } from '#shared/platform/images.ts';
import {
  buildSpec,
  buildToEnd,
  buildUntilStarted,
  sourceOf,
  unaborted,
  watchToEnd,
} from '#shared/platform/testing/build-specs.ts';

export interface BuildsHarness {
  readonly builds: Builds;
  readonly caches: BuildCaches;
  readonly images: Images;
  /** Sources of apps whose builds end like that; the endless one prints `started` when it has begun. */
  readonly sources: { readonly failing: SourceAccess; readonly endless: SourceAccess };
  stop(): Promise<void>;
}

const oneLine = /^[^\n]+$/;

/** What every driver of builds does, be it in memory, on one machine or on a cluster. */
export function describeBuilds(name: string, start: () => Promise<BuildsHarness>): void {
  describe(`builds contract: ${name}`, () => {
    let harness: BuildsHarness;
    beforeAll(async () => {
      harness = await start();
    });
    afterAll(() => harness?.stop());

    const plain = sourceOf({
      Procfile: 'web: ./server --port $PORT\nworker: ./worker\nrelease: ./migrate\n',
      server: '#!/bin/sh\n',
    });

    it('gives process types, the release command and an image that exists', async () => {
      const spec = buildSpec(plain);
      const { outcome } = await buildToEnd(harness.builds, spec);
      expect(outcome).toMatchObject({
        status: 'succeeded',
        processes: { web: './server --port $PORT', worker: './worker' },
        releaseCommand: './migrate',
        builder: expect.stringMatching(/./),
      });
      if (outcome.status !== 'succeeded') return;
      expect(outcome.imageUrl).toContain(outcome.digest);
      expect(outcome.imageUrl).toContain(spec.appId);
      expect(await harness.images.imageExists(outcome.imageUrl)).toBe(true);
    });

    it('gives the same source of the same app the same image, and another source another', async () => {
      const spec = buildSpec(plain);
      const { outcome: first } = await buildToEnd(harness.builds, spec);
      const { outcome: again } = await buildToEnd(harness.builds, { ...spec, buildId: newUuid<BuildId>() });
      const other = await buildToEnd(harness.builds, {
        ...spec,
        buildId: newUuid<BuildId>(),
        source: sourceOf({ Procfile: 'web: ./other' }),
      });
      expect(again).toEqual(first);
      expect(other.outcome.status).toBe('succeeded');
      expect(other.outcome).not.toMatchObject({ imageUrl: first.status === 'succeeded' ? first.imageUrl : '' });
    });

    it('builds once, however often the build is started, and tells its end to whoever watches later', async () => {
      const spec = buildSpec(plain);
      await Promise.all([harness.builds.startBuild(spec), harness.builds.startBuild(spec)]);
      const first = await watchToEnd(harness.builds, spec.buildId);
      await harness.builds.startBuild({ ...spec, source: sourceOf({ Procfile: 'web: ./other' }) });
      expect(await watchToEnd(harness.builds, spec.buildId)).toEqual(first);
    });

    it('closes the source once, whether the build is started by it or not', async () => {
      const closed: string[] = [];
      const closing = (what: string): SourceAccess => ({ ...plain, close: async () => void closed.push(what) });
      const spec = buildSpec(closing('first'));
      await buildToEnd(harness.builds, spec);
      await harness.builds.startBuild({ ...spec, source: closing('second') });
      await expect.poll(() => closed).toEqual(['first', 'second']);
    });

    it('numbers the lines from 1, and gives each watcher those after the one that it names', async () => {
      const spec = buildSpec(plain);
      await harness.builds.startBuild(spec);
      const events: BuildEvent[] = [];
      const [, , late] = await Promise.all([
        watchToEnd(harness.builds, spec.buildId),
        (async () => {
          for await (const event of harness.builds.watchBuild(spec.buildId, 0, unaborted)) events.push(event);
        })(),
        watchToEnd(harness.builds, spec.buildId, 1),
      ]);
      const lines = events.flatMap((event) => (event.type === 'line' ? event : []));
      expect(lines.length).toBeGreaterThan(1);
      expect(lines.map(({ number }) => number)).toEqual(lines.map((_, index) => index + 1));
      expect(events.at(-1)).toMatchObject({ type: 'ended', seconds: expect.any(Number) });
      expect(late.lines).toEqual(lines.slice(1).map(({ line }) => line));
      const after = await watchToEnd(harness.builds, spec.buildId, lines.length);
      expect(after).toMatchObject({ lines: [], outcome: { status: 'succeeded' } });
    });

    it('prints steps and details in the shape that people read', async () => {
      const { lines } = await buildToEnd(harness.builds, buildSpec(plain));
      expect(lines.every((line) => /^(-----> | {7})\S/.test(line))).toBe(true);
      expect(lines.some((line) => line.startsWith('-----> '))).toBe(true);
    });

    it.each([
      ['a Procfile that is wrong', { Procfile: 'web: a\nnonsense\n' }],
      ['nothing to build', { 'notes.txt': 'nothing' }],
    ])('fails with a cause in one line that names the Procfile: %s', async (_, files) => {
      const { outcome } = await buildToEnd(harness.builds, buildSpec(sourceOf(files)));
      expect(outcome).toMatchObject({ status: 'failed', cause: expect.stringMatching(/^[^\n]*Procfile[^\n]*$/) });
    });

    it("makes a build's own failure an outcome with a cause in one line", async () => {
      const { outcome } = await buildToEnd(harness.builds, buildSpec(harness.sources.failing));
      expect(outcome).toMatchObject({ status: 'failed', cause: expect.stringMatching(oneLine) });
    });

    it('fails a build that takes longer than it may, and says how long that is', async () => {
      const { outcome } = await buildToEnd(harness.builds, buildSpec(harness.sources.endless, { timeoutSeconds: 2 }));
      expect(outcome).toMatchObject({ status: 'failed', cause: expect.stringMatching(/^[^\n]*2 seconds[^\n]*$/) });
    });

    it('cancels a build that runs, once, and no other', async () => {
      const spec = buildSpec(harness.sources.endless);
      await buildUntilStarted(harness.builds, spec);
      expect(await harness.builds.cancelBuild(newUuid<BuildId>())).toBe(false);
      expect(await harness.builds.cancelBuild(spec.buildId)).toBe(true);
      expect(await watchToEnd(harness.builds, spec.buildId)).toMatchObject({ outcome: { status: 'canceled' } });
      expect(await harness.builds.cancelBuild(spec.buildId)).toBe(false);
    });

    it('cancels a build as soon as it is accepted', async () => {
      const spec = buildSpec(harness.sources.endless);
      await harness.builds.startBuild(spec);
      expect(await harness.builds.cancelBuild(spec.buildId)).toBe(true);
      expect(await watchToEnd(harness.builds, spec.buildId)).toMatchObject({ outcome: { status: 'canceled' } });
    });

    it("lets a watcher go by its signal, with the signal's reason, and goes on building", async () => {
      const spec = buildSpec(harness.sources.endless);
      await buildUntilStarted(harness.builds, spec);
      const leaving = new AbortController();
      const reason = new Error('the watcher leaves');
      const watch = async (): Promise<void> => {
        for await (const _event of harness.builds.watchBuild(spec.buildId, 0, leaving.signal))
          setTimeout(() => leaving.abort(reason), 50);
      };
      await expect(watch()).rejects.toBe(reason);
      expect(await harness.builds.cancelBuild(spec.buildId)).toBe(true);
      await watchToEnd(harness.builds, spec.buildId);
    });

    it('reports a build as lost that it does not know', async () => {
      const unknown = newUuid<BuildId>();
      await harness.builds.checkBuild(unknown);
      expect(await watchToEnd(harness.builds, unknown)).toEqual({ lines: [], outcome: { status: 'lost' }, seconds: 0 });
    });

    it('forgets a build that is deleted, whose image stays, and can build it again', async () => {
      const spec = buildSpec(plain);
      const { outcome } = await buildToEnd(harness.builds, spec);
      expect(await harness.builds.deleteBuild(spec.buildId)).toBe(true);
      expect(await harness.builds.deleteBuild(spec.buildId)).toBe(false);
      expect(await watchToEnd(harness.builds, spec.buildId)).toMatchObject({ outcome: { status: 'lost' } });
      expect(outcome.status === 'succeeded' && (await harness.images.imageExists(outcome.imageUrl))).toBe(true);
      expect((await buildToEnd(harness.builds, spec)).outcome).toEqual(outcome);
    });

    it('ends a build that is deleted while it runs', async () => {
      const spec = buildSpec(harness.sources.endless);
      await buildUntilStarted(harness.builds, spec);
      const watched = watchToEnd(harness.builds, spec.buildId);
      expect(await harness.builds.deleteBuild(spec.buildId)).toBe(true);
      expect(['canceled', 'lost']).toContain((await watched).outcome.status);
      expect(await watchToEnd(harness.builds, spec.buildId)).toMatchObject({ outcome: { status: 'lost' } });
    });

    it('says that a build may have ended is no harm to one that has not', async () => {
      const spec = buildSpec(harness.sources.endless);
      await buildUntilStarted(harness.builds, spec);
      await harness.builds.checkBuild(spec.buildId);
      expect(await harness.builds.cancelBuild(spec.buildId)).toBe(true);
      await watchToEnd(harness.builds, spec.buildId);
    });
  });
}
