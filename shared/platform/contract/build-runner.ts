import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, type BuildId, newUuid, type TenantId } from '#shared/ids.ts';
import type { BuildCaches } from '#shared/platform/build-caches.ts';
import type { BuildRunner, BuildSpec, OpenSource, SourceEntry } from '#shared/platform/builds.ts';
import type { Images } from '#shared/platform/images.ts';

export interface BuildRunnerHarness {
  readonly builds: BuildRunner;
  readonly caches: BuildCaches;
  readonly images: Images;
  /** Sources of apps whose builds end like that; the endless one says `started` when it is at it. */
  readonly sources: { readonly failing: OpenSource; readonly endless: OpenSource };
  stop(): Promise<void>;
}

/** A source held in memory, for tests: path to text. */
export function openFiles(files: Readonly<Record<string, string>>): OpenSource {
  return async function* () {
    for (const path of Object.keys(files).sort()) {
      yield { path, kind: 'file', content: new TextEncoder().encode(files[path] ?? '') } satisfies SourceEntry;
    }
  };
}

export function buildSpec(openSource: OpenSource, changes: Partial<BuildSpec> = {}): BuildSpec {
  return {
    buildId: newUuid<BuildId>(),
    appId: newUuid<AppId>(),
    appName: 'hello',
    tenantId: 'abcd1234' as TenantId,
    openSource,
    env: {},
    cacheState: 'Cold',
    timeoutSeconds: 120,
    ...changes,
  };
}

export const unaborted = new AbortController().signal;

/** What every runner of builds does, be it in memory, on one machine or on a cluster. */
export function describeBuildRunner(name: string, start: () => Promise<BuildRunnerHarness>): void {
  describe(`build runner contract: ${name}`, () => {
    let harness: BuildRunnerHarness;
    beforeAll(async () => {
      harness = await start();
    });
    afterAll(() => harness?.stop());

    const plain = openFiles({
      Procfile: 'web: ./server --port $PORT\nworker: ./worker\nrelease: ./migrate\n',
      server: '#!/bin/sh\n',
    });

    it('gives process types, the release command and an image that exists', async () => {
      const spec = buildSpec(plain);
      const outcome = await harness.builds.runBuild(spec, () => undefined, unaborted);
      expect(outcome).toMatchObject({
        status: 'succeeded',
        processes: { web: './server --port $PORT', worker: './worker' },
        releaseCommand: './migrate',
        builder: 'procfile',
      });
      if (outcome.status !== 'succeeded') return;
      expect(outcome.imageUrl).toContain(outcome.digest);
      expect(outcome.imageUrl).toContain(spec.appId);
      expect(await harness.images.imageExists(outcome.imageUrl)).toBe(true);
    });

    it('gives the same source of the same app the same image, and another source another', async () => {
      const spec = buildSpec(plain);
      const first = await harness.builds.runBuild(spec, () => undefined, unaborted);
      const again = await harness.builds.runBuild({ ...spec, buildId: newUuid<BuildId>() }, () => undefined, unaborted);
      const other = await harness.builds.runBuild(
        { ...spec, openSource: openFiles({ Procfile: 'web: ./other' }) },
        () => undefined,
        unaborted,
      );
      expect(again).toEqual(first);
      expect(other).not.toMatchObject({ imageUrl: first.status === 'succeeded' ? first.imageUrl : '' });
    });

    it('can be called again with the same build id, as after a crash', async () => {
      const spec = buildSpec(plain);
      const first = await harness.builds.runBuild(spec, () => undefined, unaborted);
      expect(await harness.builds.runBuild(spec, () => undefined, unaborted)).toEqual(first);
    });

    it('tells steps and details as they come, in the shape that people read', async () => {
      const lines: string[] = [];
      await harness.builds.runBuild(buildSpec(plain), (line) => lines.push(line), unaborted);
      expect(lines).toContain('-----> Plain app detected (Procfile)');
      expect(lines).toContain('       Procfile declares types -> web, worker');
      expect(lines.every((line) => /^(-----> | {7})\S/.test(line))).toBe(true);
    });

    it('names the line of a Procfile that is wrong', async () => {
      const outcome = await harness.builds.runBuild(
        buildSpec(openFiles({ Procfile: 'web: a\nnonsense\n' })),
        () => undefined,
        unaborted,
      );
      expect(outcome).toEqual({ status: 'failed', cause: 'Procfile line 2 is not "<type>: <command>": nonsense' });
    });

    it('says what it looked for when it found nothing', async () => {
      const outcome = await harness.builds.runBuild(buildSpec(openFiles({ 'notes.txt': 'nothing' })), () => undefined, unaborted);
      expect(outcome).toMatchObject({ status: 'failed', cause: expect.stringMatching(/^No language detected.*Procfile/) });
    });

    it("makes a build's own failure an outcome with a cause in one line", async () => {
      const outcome = await harness.builds.runBuild(buildSpec(harness.sources.failing), () => undefined, unaborted);
      expect(outcome).toMatchObject({ status: 'failed', cause: expect.stringMatching(/^[^\n]+$/) });
    });

    it('ends at its timeout and says so', async () => {
      const outcome = await harness.builds.runBuild(
        buildSpec(harness.sources.endless, { timeoutSeconds: 2 }),
        () => undefined,
        unaborted,
      );
      expect(outcome).toEqual({ status: 'failed', cause: 'The build took longer than 2 seconds and was stopped.' });
    });

    it("rejects with the signal's reason when it is cancelled, before or while it runs", async () => {
      const reason = new Error('cancelled by its owner');
      await expect(harness.builds.runBuild(buildSpec(plain), () => undefined, AbortSignal.abort(reason))).rejects.toBe(reason);
      const cancel = new AbortController();
      const running = harness.builds.runBuild(
        buildSpec(harness.sources.endless),
        (line) => {
          if (line.endsWith('started')) cancel.abort(reason);
        },
        cancel.signal,
      );
      await expect(running).rejects.toBe(reason);
    });
  });
}
