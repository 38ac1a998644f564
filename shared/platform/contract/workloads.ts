import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AppId, newTenantId, newUuid, type ReleaseId } from '#shared/ids.ts';
import type { AppLogs } from '#shared/platform/app-logs.ts';
import type { InstanceFacts, RolloutFacts, RolloutPlan, WorkloadSpec, Workloads } from '#shared/platform/workloads.ts';
import type { FakeRouter } from '#shared/routing/fake-router.ts';

export interface WorkloadsHarness {
  readonly workloads: Workloads;
  readonly logs: AppLogs;
  /** Where the workloads' routes go. */
  readonly router: FakeRouter;
  /** `serve` listens on PORT; `work` runs on; `fail` prints 'no database' and exits with 4; each is what `command` may be. */
  readonly image: string;
  readonly commands: Readonly<Record<'serve' | 'work' | 'fail', string>>;
  /** For `runOnce`: prints 'out', then exits with 9; runs until it is ended. */
  readonly runs: { readonly exits9: string; readonly hangs: string };
  /** Lets the instance end by itself. */
  crash(appId: AppId, name: string): Promise<void>;
  /** Lets the instance work for 0.3 s of processor time. */
  work(appId: AppId, name: string): Promise<void>;
  stop(): Promise<void>;
}

/** What every ground does with workloads, whether processes run on it or only look so. */
export function describeWorkloads(name: string, startHarness: () => Promise<WorkloadsHarness>): void {
  describe(`workloads contract: ${name}`, () => {
    let harness: WorkloadsHarness;
    let workloads: Workloads;
    let router: FakeRouter;
    let appId: AppId;
    beforeAll(async () => {
      harness = await startHarness();
      ({ workloads, router } = harness);
    });
    afterAll(() => harness?.stop());
    beforeEach(() => {
      appId = newUuid();
    });
    afterEach(async () => void (await workloads.deleteWorkload(appId)));

    const plan: RolloutPlan = { weights: [10, 25, 50, 100], stepSeconds: 0.3 };
    const never = new AbortController().signal;

    /** @param quantities command and quantity by type */
    function specOf(
      releaseVersion: number,
      quantities: Readonly<Record<string, readonly [keyof WorkloadsHarness['commands'], number]>>,
    ): WorkloadSpec {
      const processes = Object.entries(quantities).map(([type, [command, quantity]]) => ({
        type,
        command: harness.commands[command],
        quantity,
      }));
      return {
        appId,
        appName: `app-${appId.slice(0, 8)}`,
        tenantId: newTenantId(),
        releaseId: newUuid<ReleaseId>(),
        releaseVersion,
        imageUrl: harness.image,
        processes,
        env: {},
        hosts: [hostOf()],
      };
    }
    const hostOf = (): string => `app-${appId.slice(0, 8)}.apps.localhost`;
    const web = (releaseVersion: number, quantity = 1): WorkloadSpec => specOf(releaseVersion, { web: ['serve', quantity] });

    async function rollOut(
      spec: WorkloadSpec,
      signal = never,
      onFact: (fact: RolloutFacts) => void = () => undefined,
    ): Promise<RolloutFacts[]> {
      const facts: RolloutFacts[] = [];
      for await (const fact of workloads.rollOut(spec, plan, signal)) {
        facts.push(fact);
        onFact(fact);
      }
      return facts;
    }
    const running = async (): Promise<InstanceFacts[]> =>
      (await workloads.readInstances(appId)).filter(({ state }) => state !== 'stopping');
    const names = async (): Promise<string[]> =>
      (await running()).map(({ name, releaseVersion }) => `${name} v${releaseVersion}`);
    const weights = async (): Promise<Record<number, number>> =>
      Object.fromEntries(
        ((await router.readRoute(appId))?.backends ?? []).map(({ releaseVersion, weight }) => [releaseVersion, weight]),
      );

    /** Visitors until `stop`: each is answered at once, with what `status` says of the release that got it. */
    function holdVisitors(status: (releaseVersion: number) => number): { refused(): number; stop(): void } {
      let refused = 0;
      const timer = setInterval(() => {
        const request = router.beginRequest(hostOf());
        if (request === undefined) refused += 1;
        else request.end({ status: status(request.releaseVersion) });
      }, 2);
      return { refused: () => refused, stop: () => clearInterval(timer) };
    }

    it('brings the first release straight to all traffic', async () => {
      const facts = await rollOut(web(1, 2));
      expect(facts.map(({ phase }) => phase)).toEqual(['starting', 'progressing', 'live']);
      expect(facts.at(-1)).toMatchObject({ phase: 'live', weight: 100 });
      expect(await names()).toEqual(['web.1 v1', 'web.2 v1']);
      expect((await router.readRoute(appId))?.backends).toMatchObject([{ releaseVersion: 1, weight: 100, instances: [{}, {}] }]);
    });

    it('moves traffic by the plan when there is an older release, at once without visitors, and ends the old one', async () => {
      await rollOut(web(1));
      const facts = await rollOut(web(2));
      expect([...new Set(facts.map(({ weight }) => weight))]).toEqual([0, 10, 25, 50, 100]);
      expect(facts.at(-1)?.phase).toBe('live');
      expect(await weights()).toEqual({ 2: 100 });
      await expect.poll(() => workloads.readInstances(appId), { timeout: 10_000 }).toHaveLength(1);
      expect(await names()).toEqual(['web.1 v2']);
    });

    it('passes a step on enough good answers, and refuses nobody meanwhile', async () => {
      await rollOut(web(1));
      const visitors = holdVisitors(() => 200);
      await expect.poll(async () => (await router.readTraffic(appId))[0]?.requests ?? 0, { timeout: 10_000 }).toBeGreaterThan(50);
      const facts = await rollOut(web(2));
      visitors.stop();
      expect(facts.find(({ detail }) => detail !== undefined)?.detail).toMatch(/^\d+ requests, 0 errors$/);
      expect(facts.at(-1)?.phase).toBe('live');
      expect(visitors.refused()).toBe(0);
    });

    it('gives all traffic back to the old release when the new one answers with errors', async () => {
      await rollOut(web(1));
      const visitors = holdVisitors((releaseVersion) => (releaseVersion === 2 ? 503 : 200));
      await expect
        .poll(async () => (await router.readTraffic(appId))[0]?.requests ?? 0, { timeout: 10_000 })
        .toBeGreaterThan(200);
      const facts = await rollOut({ ...web(2) }, never);
      visitors.stop();
      expect(facts.at(-1)).toMatchObject({ phase: 'aborted', weight: 0 });
      expect(facts.at(-1)?.detail).toMatch(/errors at \d+%/);
      expect(await weights()).toEqual({ 1: 100 });
      expect(await names()).toEqual(['web.1 v1']);
      expect(visitors.refused()).toBe(0);
    });

    it('leaves the old release as it is when the new one does not come up, and shows what it printed', async () => {
      await rollOut(web(1));
      const [before] = await running();
      const facts = await rollOut(specOf(2, { web: ['fail', 1] }));
      expect(facts.at(-1)).toMatchObject({ phase: 'aborted', output: ['no database'] });
      expect(facts.at(-1)?.detail).toBe('web.1 exited with code 4 before it listened on PORT');
      expect(facts.every(({ weight }) => weight === 0)).toBe(true);
      expect(await running()).toEqual([before]);
      expect(await weights()).toEqual({ 1: 100 });
    });

    it('leaves nothing when the first release does not come up, and takes the next', async () => {
      expect((await rollOut(specOf(1, { web: ['fail', 1] }))).at(-1)?.phase).toBe('aborted');
      expect(await running()).toEqual([]);
      expect((await rollOut(web(2))).at(-1)?.phase).toBe('live');
    });

    it('aborts by its signal, at whatever step it is', async () => {
      await rollOut(web(1));
      const cancel = new AbortController();
      const visitors = holdVisitors(() => 200);
      await expect.poll(async () => (await router.readTraffic(appId))[0]?.requests ?? 0, { timeout: 10_000 }).toBeGreaterThan(20);
      const facts = await rollOut(web(2), cancel.signal, ({ weight }) => void (weight === 25 && cancel.abort()));
      visitors.stop();
      expect(facts.at(-1)?.phase).toBe('aborted');
      expect(await weights()).toEqual({ 1: 100 });
      expect(await names()).toEqual(['web.1 v1']);
    });

    it('stays where it is when nobody iterates on, and goes on from there when called again', async () => {
      await rollOut(web(1));
      const next = web(2);
      for await (const { weight } of workloads.rollOut(next, plan, never)) if (weight === 25) break;
      expect(await weights()).toEqual({ 1: 75, 2: 25 });
      const [, fresh] = await running();
      const facts = await rollOut(next);
      expect(facts[0]).toMatchObject({ phase: 'starting', weight: 25 });
      expect(facts.at(-1)?.phase).toBe('live');
      expect(await running()).toEqual([fresh]);
    });

    it('says at once that a release is live which is', async () => {
      const spec = web(1);
      await rollOut(spec);
      expect(await rollOut(spec)).toEqual([{ phase: 'live', weight: 100 }]);
    });

    it('takes the place of a release that was left half rolled out', async () => {
      await rollOut(web(1));
      for await (const { weight } of workloads.rollOut(web(2), plan, never)) if (weight === 25) break;
      expect((await rollOut(web(3))).at(-1)?.phase).toBe('live');
      expect(await weights()).toEqual({ 3: 100 });
      await expect.poll(names, { timeout: 10_000 }).toEqual(['web.1 v3']);
    });

    it('runs an app that has no web process', async () => {
      const facts = await rollOut(specOf(1, { worker: ['work', 2] }));
      expect(facts.at(-1)?.phase).toBe('live');
      expect(await names()).toEqual(['worker.1 v1', 'worker.2 v1']);
      expect((await rollOut(specOf(2, { worker: ['work', 1] }))).at(-1)?.phase).toBe('live');
      await expect.poll(names, { timeout: 10_000 }).toEqual(['worker.1 v2']);
    });

    it('gives up a release whose worker does not run, and runs the old one again', async () => {
      await rollOut(specOf(1, { web: ['serve', 1], worker: ['work', 1] }));
      const facts = await rollOut(specOf(2, { web: ['serve', 1], worker: ['fail', 1] }));
      expect(facts.at(-1)).toMatchObject({ phase: 'aborted', output: ['no database'] });
      await expect.poll(names, { timeout: 10_000 }).toEqual(['web.1 v1', 'worker.1 v1']);
      expect(await weights()).toEqual({ 1: 100 });
    });

    it('scales up and down without touching what stays', async () => {
      const spec = web(1);
      await rollOut(spec);
      const [first] = await running();
      await workloads.ensureWorkload({ ...spec, processes: [{ type: 'web', command: harness.commands.serve, quantity: 3 }] });
      expect(await names()).toEqual(['web.1 v1', 'web.2 v1', 'web.3 v1']);
      expect((await router.readRoute(appId))?.backends[0]?.instances).toHaveLength(3);
      await workloads.ensureWorkload(spec);
      expect(await running()).toEqual([first]);
      expect((await router.readRoute(appId))?.backends[0]?.instances).toHaveLength(1);
    });

    it('makes a workload run that never ran here', async () => {
      const spec = { ...web(5), hosts: [hostOf(), `${hostOf()}.example.com`] };
      await workloads.ensureWorkload(spec);
      expect(await names()).toEqual(['web.1 v5']);
      expect(await router.readRoute(appId)).toMatchObject({
        hosts: spec.hosts,
        backends: [{ releaseVersion: 5, weight: 100, instances: [{}] }],
      });
    });

    it('replaces every instance at a restart and refuses nobody meanwhile', async () => {
      await rollOut(web(1, 2));
      const before = (await router.readRoute(appId))?.backends[0]?.instances.map(({ key }) => key) ?? [];
      const visitors = holdVisitors(() => 200);
      await workloads.restartWorkload(appId);
      visitors.stop();
      const after = (await router.readRoute(appId))?.backends[0]?.instances.map(({ key }) => key) ?? [];
      expect(after).toHaveLength(2);
      expect(after.filter((key) => before.includes(key))).toEqual([]);
      expect(visitors.refused()).toBe(0);
      expect(await names()).toEqual(['web.1 v1', 'web.2 v1']);
    });

    it('starts an instance again that ended by itself, counts it, and says so in the log', async () => {
      await rollOut(web(1));
      await harness.crash(appId, 'web.1');
      await expect.poll(running, { timeout: 10_000 }).toMatchObject([{ name: 'web.1', state: 'up', restarts: 1 }]);
      const said = (await harness.logs.readLogs(appId, { lines: 50, process: 'paas' })).map(({ message }) => message);
      expect(said).toContain('web.1 exited with code 3, restarting in 1 s');
    });

    it('tells processor time and memory of each instance, and the requests of releases that are gone too', async () => {
      await rollOut(specOf(1, { web: ['serve', 1], worker: ['work', 1] }));
      const before = (await workloads.readUsage(appId)).instances.find(({ type }) => type === 'web');
      await harness.work(appId, 'web.1');
      const { instances } = await workloads.readUsage(appId);
      const after = instances.find(({ type }) => type === 'web');
      expect(instances.map(({ type }) => type).toSorted()).toEqual(['web', 'worker']);
      expect(after?.run).toBe(before?.run);
      expect((after?.cpuSeconds ?? 0) - (before?.cpuSeconds ?? 0)).toBeGreaterThan(0.2);
      for (const { memoryBytes } of instances) expect(memoryBytes).toBeGreaterThan(100_000);

      router.beginRequest(hostOf())?.end({ status: 500 });
      await rollOut(specOf(2, { web: ['serve', 1] }));
      router.beginRequest(hostOf())?.end();
      expect((await workloads.readUsage(appId)).traffic).toMatchObject([
        { releaseVersion: 1, requests: 1, errors: 1 },
        { releaseVersion: 2, requests: 1, errors: 0 },
      ]);
    });

    it('begins a new run of an instance with each start', async () => {
      await rollOut(web(1));
      const [before] = (await workloads.readUsage(appId)).instances;
      await harness.crash(appId, 'web.1');
      await expect.poll(running, { timeout: 10_000 }).toMatchObject([{ name: 'web.1', state: 'up', restarts: 1 }]);
      const [after] = (await workloads.readUsage(appId)).instances;
      expect(after?.run).not.toBe(before?.run);
      await workloads.deleteWorkload(appId);
      expect(await workloads.readUsage(appId)).toEqual({ instances: [], traffic: [] });
    });

    it('deletes instances and routes, keeps the log, and says whether there was anything', async () => {
      await rollOut(web(1));
      await harness.logs.appendPlatformLog(appId, 'kept');
      expect(await workloads.deleteWorkload(appId)).toBe(true);
      expect(await workloads.readInstances(appId)).toEqual([]);
      expect(await router.readRoute(appId)).toBeUndefined();
      expect(await workloads.deleteWorkload(appId)).toBe(false);
      expect((await harness.logs.readLogs(appId, { lines: 50 })).map(({ message }) => message)).toContain('kept');
    });

    it('runs a command once, line by line, and gives its exit code', async () => {
      const lines: string[] = [];
      expect(await workloads.runOnce(web(1), harness.runs.exits9, (line) => lines.push(line), never)).toBe(9);
      expect(lines).toEqual(['out']);
    });

    it("ends a command with its signal, and rejects with the signal's reason", async () => {
      const cancel = new AbortController();
      const run = workloads.runOnce(
        web(1),
        harness.runs.hangs,
        (line) => void (line === 'out' && cancel.abort(new Error('enough'))),
        cancel.signal,
      );
      await expect(run).rejects.toThrow('enough');
    });
  });
}
