import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RolloutFacts, Rollouts } from '#shared/platform/rollouts.ts';
import { type Order, passEachStep, type RollOutOptions, rollOut } from '#shared/platform/testing/roll-out.ts';
import { type AppUnderTest, createAppUnderTest, type WorkloadsUnderTest } from '#shared/platform/testing/workloads-under-test.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';

const patience = { timeout: 10_000 };

/** What every platform does with rollouts, whether processes run on it or are only listed. */
export function describeRollouts(name: string, openFixture: () => Promise<WorkloadsUnderTest>): void {
  describe(`rollouts contract: ${name}`, () => {
    let fixture: WorkloadsUnderTest;
    let rollouts: Rollouts;
    let app: AppUnderTest;
    beforeAll(async () => {
      fixture = await openFixture();
      ({ rollouts } = fixture);
    });
    afterAll(() => fixture?.stop());
    beforeEach(() => {
      app = createAppUnderTest(fixture);
    });
    afterEach(async () => void (await fixture.workloads.deleteWorkload(app.appId)));

    const never = new AbortController().signal;
    const weights = () => fixture.readWeights(app.appId);

    async function bringLive(spec: WorkloadSpec, options: RollOutOptions = {}): Promise<RolloutFacts[]> {
      const facts: RolloutFacts[] = [];
      for await (const fact of rollOut(rollouts, spec, options)) facts.push(fact);
      return facts;
    }
    /** Leaves the rollout at `weight`. */
    async function rollOutTo(weight: number, spec: WorkloadSpec): Promise<void> {
      for await (const facts of rollOut(rollouts, spec)) if (facts.weight === weight) return;
    }
    async function factsNow(): Promise<RolloutFacts | undefined> {
      for await (const facts of rollouts.watchRollout(app.appId, never)) return facts;
      return undefined;
    }
    const stepsOf = (facts: readonly RolloutFacts[]) => [...new Set(facts.map(({ weight }) => weight))];
    const waitAt =
      (weight: number) =>
      (facts: RolloutFacts): Order =>
        facts.weight === weight ? { action: 'wait' } : passEachStep(facts);

    it('brings the first release straight to all traffic', async () => {
      const facts = await bringLive(app.web(1, 2));
      expect(facts[0]).toMatchObject({ phase: 'starting', weight: 0, releaseVersion: 1 });
      expect(stepsOf(facts)).toEqual([0, 100]);
      expect(facts.at(-1)).toMatchObject({ phase: 'live', weight: 100, crash: undefined, failure: undefined });
      expect(await app.names()).toEqual(['web.1 v1', 'web.2 v1']);
      expect(await weights()).toEqual({ 1: 100 });
      expect(app.instancesThatAnswer(10).size).toBe(2);
    });

    it('moves traffic step by step when there is an older release, and ends the old one', async () => {
      await bringLive(app.web(1));
      const seen: unknown[] = [];
      for await (const { phase, weight } of rollOut(rollouts, app.web(2)))
        if (phase === 'serving') seen.push([weight, await weights()]);
      expect(seen).toEqual(
        expect.arrayContaining([
          [10, { 1: 90, 2: 10 }],
          [25, { 1: 75, 2: 25 }],
          [50, { 1: 50, 2: 50 }],
          [100, { 2: 100 }],
        ]),
      );
      expect(await weights()).toEqual({ 2: 100 });
      await expect.poll(() => fixture.workloads.readInstances(app.appId), patience).toHaveLength(1);
      expect(await app.names()).toEqual(['web.1 v2']);
    });

    it('follows the weights it is given, and refuses no request meanwhile', async () => {
      await bringLive(app.web(1));
      const visitors = app.holdVisitors();
      const facts = await bringLive(app.web(2), { weights: [30, 100] });
      visitors.stop();
      expect(stepsOf(facts)).toEqual([0, 30, 100]);
      expect(visitors.refused()).toBe(0);
    });

    it('counts the requests and errors of both releases, and reports when the last request came', async () => {
      await bringLive(app.web(1));
      await rollOutTo(50, app.web(2));
      expect((await factsNow())?.secondsSinceRequest).toBe(Number.POSITIVE_INFINITY);
      for (let request = 0; request < 20; request += 1) {
        const visit = fixture.visit(app.host);
        visit?.end(visit.releaseVersion === 2 ? 503 : 200);
      }
      const counted = async () => {
        const facts = await factsNow();
        return [facts?.traffic.stable, facts?.traffic.candidate].map((traffic) => [traffic?.requests, traffic?.errors]);
      };
      await expect.poll(counted, patience).toEqual([[10, 0], [10, 10]]); // biome-ignore format: a table
      expect((await factsNow())?.secondsSinceRequest).toBeLessThan(10);
    });

    it('asks the new or the old release for the health path', async () => {
      const first = app.web(1);
      expect(await rollouts.askRelease(app.appId, first.releaseId, 'candidate')).toBeUndefined();
      await bringLive(first);
      const next = { ...app.web(2), healthPath: '/healthy' };
      await rollOutTo(50, next);
      const asked = { path: '/healthy', isOwnPath: true };
      const ofCandidate = await rollouts.askRelease(app.appId, next.releaseId, 'candidate');
      expect(ofCandidate).toEqual({ ...asked, answers: [200] });
      const ofStable = await rollouts.askRelease(app.appId, next.releaseId, 'stable');
      expect([{ ...ofStable, answers: [] }, new Set(ofStable?.answers)]).toEqual([{ ...asked, answers: [] }, new Set([200])]);
    });

    it('gives all traffic back to the old release when it is aborted, and reports the cause', async () => {
      await bringLive(app.web(1));
      const visitors = app.holdVisitors();
      const facts = await bringLive(app.web(2), {
        decide: (fact) => (fact.weight === 25 ? { action: 'abort', cause: 'too many errors' } : passEachStep(fact)),
      });
      visitors.stop();
      expect(facts.at(-1)).toMatchObject({ phase: 'aborted', weight: 0, failure: { cause: 'too many errors' } });
      expect(await weights()).toEqual({ 1: 100 });
      expect(await app.names()).toEqual(['web.1 v1']);
      expect(visitors.refused()).toBe(0);
    });

    it('leaves the old release as it is when the new one does not start, and reports its output', async () => {
      await bringLive(app.web(1));
      const [before] = await app.running();
      const facts = await bringLive(app.specOf(2, { web: ['fail', 1] }));
      const cause = 'web.1 exited with code 4 before it listened on PORT';
      expect(facts.at(-2)?.crash).toBe(cause);
      expect(facts.at(-1)).toMatchObject({ phase: 'aborted', failure: { cause, output: ['no database'] } });
      expect(stepsOf(facts)).toEqual([0]);
      expect(await app.running()).toEqual([before]);
      expect(await weights()).toEqual({ 1: 100 });
    });

    it('leaves nothing of a first release that does not start, and accepts the next', async () => {
      expect((await bringLive(app.specOf(1, { web: ['fail', 1] }))).at(-1)?.phase).toBe('aborted');
      expect(await app.running()).toEqual([]);
      expect((await bringLive(app.web(2))).at(-1)?.phase).toBe('live');
    });

    it('continues after a time without a watcher, from the same weight, with the instances that were started already', async () => {
      await bringLive(app.web(1));
      const next = app.web(2);
      await rollOutTo(25, next);
      expect(await weights()).toEqual({ 1: 75, 2: 25 });
      const [, fresh] = await app.running();
      const facts = await bringLive(next);
      expect(facts[0]?.weight).toBe(25);
      expect(facts.at(-1)?.phase).toBe('live');
      expect(await app.running()).toEqual([fresh]);
    });

    it('reports the same to several that watch, and ends the watch with its signal alone', async () => {
      await bringLive(app.web(1));
      await rollOutTo(10, app.web(2));
      const leave = new AbortController();
      const others = (async () => {
        const facts: RolloutFacts[] = [];
        for await (const fact of rollouts.watchRollout(app.appId, leave.signal)) {
          facts.push(fact);
          leave.abort();
        }
        return facts;
      })();
      expect(await others).toMatchObject([{ phase: 'serving', weight: 10, releaseVersion: 2 }]);
      expect(await factsNow()).toMatchObject({ phase: 'serving', weight: 10, releaseVersion: 2 });
    });

    it('skips no step when an order comes twice or late, and ignores orders for another release', async () => {
      await bringLive(app.web(1));
      const next = app.web(2);
      await rollOutTo(10, next);
      for (let count = 0; count < 3; count += 1) await rollouts.advanceRollout(app.appId, next.releaseId, 10);
      expect(await weights()).toEqual({ 1: 75, 2: 25 });
      const other = app.web(3);
      await rollouts.advanceRollout(app.appId, other.releaseId, 25);
      await rollouts.promoteRollout(app.appId, other.releaseId);
      await rollouts.abortRollout(app.appId, other.releaseId, 'not meant');
      await rollouts.startRollout(next, [10, 25, 50, 100]);
      expect(await weights()).toEqual({ 1: 75, 2: 25 });
      expect(await factsNow()).toMatchObject({ phase: 'serving', weight: 25 });
    });

    it('gives all traffic at once when it is promoted from any step, however often', async () => {
      await bringLive(app.web(1));
      const next = app.web(2);
      const facts = await bringLive(next, {
        decide: (fact) => (fact.weight === 10 ? { action: 'promote' } : passEachStep(fact)),
      });
      expect(stepsOf(facts)).toEqual([0, 10, 100]);
      for (let count = 0; count < 2; count += 1) await rollouts.promoteRollout(app.appId, next.releaseId);
      await rollouts.abortRollout(app.appId, next.releaseId, 'too late');
      expect(await weights()).toEqual({ 2: 100 });
      expect(await app.names()).toEqual(['web.1 v2']);
    });

    it('reports facts at least every second or so while it waits for an order', async () => {
      await bringLive(app.web(1));
      const times: number[] = [];
      for await (const fact of rollOut(rollouts, app.web(2), { decide: waitAt(10) })) {
        if (fact.phase === 'serving') times.push(performance.now());
        if (times.length === 3) break;
      }
      expect((times[2] ?? 0) - (times[0] ?? 0)).toBeLessThan(5000);
    });

    it('reports a release as live that is live already', async () => {
      const spec = app.web(1);
      await bringLive(spec);
      const facts = await bringLive(spec);
      expect(facts.at(-1)).toMatchObject({ phase: 'live', weight: 100 });
      expect(await app.names()).toEqual(['web.1 v1']);
    });

    it('aborts a release that was left half rolled out when another is started', async () => {
      await bringLive(app.web(1));
      await rollOutTo(25, app.web(2));
      const replaced = (async () => {
        const phases: string[] = [];
        for await (const { phase } of rollouts.watchRollout(app.appId, never)) phases.push(phase);
        return phases.at(-1);
      })();
      expect((await bringLive(app.web(3))).at(-1)?.phase).toBe('live');
      expect(await replaced).toBe('aborted');
      expect(await weights()).toEqual({ 3: 100 });
      await expect.poll(app.names, patience).toEqual(['web.1 v3']);
    });

    it('ends the watch when the app is deleted', async () => {
      await bringLive(app.web(1));
      await rollOutTo(25, app.web(2));
      const watched = (async () => {
        const phases: string[] = [];
        for await (const { phase } of rollouts.watchRollout(app.appId, never)) phases.push(phase);
        return phases.at(-1);
      })();
      await factsNow();
      await fixture.workloads.deleteWorkload(app.appId);
      expect(await watched).toBe('aborted');
      expect(fixture.visit(app.host)).toBeUndefined();
    });

    it('is aborted when the live release is changed', async () => {
      const live = app.web(1);
      await bringLive(live);
      await rollOutTo(25, app.web(2));
      const watched = (async () => {
        const phases: string[] = [];
        for await (const { phase } of rollouts.watchRollout(app.appId, never)) phases.push(phase);
        return phases.at(-1);
      })();
      await factsNow();
      await fixture.workloads.ensureWorkload(live);
      expect(await watched).toBe('aborted');
      expect(await weights()).toEqual({ 1: 100 });
      await expect.poll(app.names, patience).toEqual(['web.1 v1']);
    });

    it('runs an app that has no web process', async () => {
      expect((await bringLive(app.specOf(1, { worker: ['work', 2] }))).at(-1)?.phase).toBe('live');
      expect(await app.names()).toEqual(['worker.1 v1', 'worker.2 v1']);
      expect((await bringLive(app.specOf(2, { worker: ['work', 1] }))).at(-1)?.phase).toBe('live');
      await expect.poll(app.names, patience).toEqual(['worker.1 v2']);
    });

    it('reports a worker that does not start, and starts the old one again when it is aborted', async () => {
      await bringLive(app.specOf(1, { web: ['serve', 1], worker: ['work', 1] }));
      const facts = await bringLive(app.specOf(2, { web: ['serve', 1], worker: ['fail', 1] }));
      expect(facts.at(-2)?.crash).toMatch(/^worker\.1 exited with code 4/);
      expect(facts.at(-1)).toMatchObject({ phase: 'aborted', failure: { output: ['no database'] } });
      await expect.poll(app.names, patience).toEqual(['web.1 v1', 'worker.1 v1']);
      expect(await weights()).toEqual({ 1: 100 });
    });
  });
}
