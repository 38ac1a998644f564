import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { UsageMetrics } from '#shared/platform/metrics.ts';
import { rollOut } from '#shared/platform/testing/roll-out.ts';
import { type AppUnderTest, createAppUnderTest, type WorkloadsUnderTest } from '#shared/platform/testing/workloads-under-test.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';

const patience = { timeout: 10_000 };

/** Workloads whose use of the processor is measured. */
export interface UsageMetricsUnderTest extends WorkloadsUnderTest {
  readonly metrics: UsageMetrics;
  /** Lets the instance work for 0.3 s of processor time. */
  work(appId: AppUnderTest['appId'], name: string): Promise<void>;
}

/** What every platform does whose metrics are counters that core samples. */
export function describeUsageMetrics(name: string, openFixture: () => Promise<UsageMetricsUnderTest>): void {
  describe(`usage metrics contract: ${name}`, () => {
    let fixture: UsageMetricsUnderTest;
    let metrics: UsageMetrics;
    let app: AppUnderTest;
    beforeAll(async () => {
      fixture = await openFixture();
      ({ metrics } = fixture);
    });
    afterAll(() => fixture?.stop());
    beforeEach(() => {
      app = createAppUnderTest(fixture);
    });
    afterEach(async () => void (await fixture.workloads.deleteWorkload(app.appId)));

    async function bringLive(spec: WorkloadSpec): Promise<void> {
      let last: string | undefined;
      for await (const { phase } of rollOut(fixture.rollouts, spec)) last = phase;
      expect(last).toBe('live');
    }

    it('measures processor time and memory of each instance, and the requests of releases that are gone too', async () => {
      await bringLive(app.specOf(1, { web: ['serve', 1], worker: ['work', 1] }));
      const before = (await metrics.readUsage(app.appId)).instances.find(({ type }) => type === 'web');
      await fixture.work(app.appId, 'web.1');
      const { instances } = await metrics.readUsage(app.appId);
      const after = instances.find(({ type }) => type === 'web');
      expect(instances.map(({ type }) => type).toSorted()).toEqual(['web', 'worker']);
      expect(after?.run).toBe(before?.run);
      expect((after?.cpuSeconds ?? 0) - (before?.cpuSeconds ?? 0)).toBeGreaterThan(0.2);
      for (const { memoryBytes } of instances) expect(memoryBytes).toBeGreaterThan(100_000);

      fixture.visit(app.host)?.end(500);
      await bringLive(app.specOf(2, { web: ['serve', 1] }));
      fixture.visit(app.host)?.end();
      expect((await metrics.readUsage(app.appId)).traffic).toMatchObject([
        { releaseVersion: 1, requests: 1, errors: 1 },
        { releaseVersion: 2, requests: 1, errors: 0 },
      ]);
    });

    it('gives an instance a new run with each start', async () => {
      await fixture.workloads.ensureWorkload(app.web(1));
      const [before] = (await metrics.readUsage(app.appId)).instances;
      await fixture.crash(app.appId, 'web.1');
      await expect.poll(app.running, patience).toMatchObject([{ name: 'web.1', state: 'up', restarts: 1 }]);
      const [after] = (await metrics.readUsage(app.appId)).instances;
      expect(after?.run).not.toBe(before?.run);
      await fixture.workloads.deleteWorkload(app.appId);
      expect(await metrics.readUsage(app.appId)).toEqual({ instances: [], traffic: [] });
    });
  });
}
