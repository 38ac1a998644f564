import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AppUnderTest, createAppUnderTest, type WorkloadsUnderTest } from '#shared/platform/testing/workloads-under-test.ts';
import type { Workloads } from '#shared/platform/workloads.ts';

const patience = { timeout: 10_000 };

/** What every platform does with workloads, whether processes run on it or are only listed. */
export function describeWorkloads(name: string, openFixture: () => Promise<WorkloadsUnderTest>): void {
  describe(`workloads contract: ${name}`, () => {
    let fixture: WorkloadsUnderTest;
    let workloads: Workloads;
    let app: AppUnderTest;
    beforeAll(async () => {
      fixture = await openFixture();
      ({ workloads } = fixture);
    });
    afterAll(() => fixture?.stop());
    beforeEach(() => {
      app = createAppUnderTest(fixture);
    });
    afterEach(async () => void (await workloads.deleteWorkload(app.appId)));

    const never = new AbortController().signal;

    it('scales up and down without restarting other instances', async () => {
      const spec = app.web(1);
      await workloads.ensureWorkload(spec);
      const [first] = await app.running();
      await workloads.ensureWorkload({ ...app.web(1, 3), releaseId: spec.releaseId });
      expect(await app.names()).toEqual(['web.1 v1', 'web.2 v1', 'web.3 v1']);
      expect(app.instancesThatAnswer(12).size).toBe(3);
      await workloads.ensureWorkload(spec);
      expect(await app.running()).toEqual([first]);
      expect(app.instancesThatAnswer(12).size).toBe(1);
    });

    it('starts a workload that has never run here, at all of its hosts', async () => {
      const other = `${app.host}.example.com`;
      await workloads.ensureWorkload({ ...app.web(5), hosts: [app.host, other] });
      expect(await app.names()).toEqual(['web.1 v5']);
      expect(await fixture.readWeights(app.appId)).toEqual({ 5: 100 });
      for (const host of [app.host, other]) {
        const visit = fixture.visit(host);
        expect(visit?.releaseVersion).toBe(5);
        visit?.end();
      }
    });

    it('stops to serve a host that the app no longer has', async () => {
      const other = `${app.host}.example.com`;
      await workloads.ensureWorkload({ ...app.web(1), hosts: [app.host, other] });
      await workloads.ensureWorkload(app.web(1));
      expect(fixture.visit(other)).toBeUndefined();
      expect(app.instancesThatAnswer(2).size).toBe(1);
    });

    it('replaces every instance at a restart, and refuses no request meanwhile', async () => {
      await workloads.ensureWorkload(app.web(1, 2));
      const before = app.instancesThatAnswer(10);
      const visitors = app.holdVisitors();
      await workloads.restartWorkload(app.appId);
      visitors.stop();
      const after = app.instancesThatAnswer(10);
      expect(after.size).toBe(2);
      expect(after.intersection(before).size).toBe(0);
      expect(visitors.refused()).toBe(0);
      expect(await app.names()).toEqual(['web.1 v1', 'web.2 v1']);
    });

    it('restarts an instance that has ended by itself, counts that, and logs it', async () => {
      await workloads.ensureWorkload(app.web(1));
      await fixture.crash(app.appId, 'web.1');
      await expect.poll(app.running, patience).toMatchObject([{ name: 'web.1', state: 'up', restarts: 1 }]);
      const logged = (await fixture.logs.readLogs(app.appId, { lines: 50, process: 'paas' })).map(({ message }) => message);
      expect(logged).toEqual(expect.arrayContaining([expect.stringMatching(/^web\.1 exited with code 3/)]));
    });

    it('deletes instances and routes, keeps the log, and reports whether there was anything', async () => {
      await workloads.ensureWorkload(app.web(1));
      await fixture.logs.appendPlatformLog(app.appId, 'kept');
      expect(await workloads.deleteWorkload(app.appId)).toBe(true);
      expect(await workloads.readInstances(app.appId)).toEqual([]);
      expect(fixture.visit(app.host)).toBeUndefined();
      expect(await workloads.deleteWorkload(app.appId)).toBe(false);
      expect((await fixture.logs.readLogs(app.appId, { lines: 50 })).map(({ message }) => message)).toContain('kept');
    });

    it('runs a command once, reports its output line by line, and resolves with its exit code', async () => {
      const lines: string[] = [];
      const run = { id: crypto.randomUUID(), spec: app.web(1), command: fixture.runs.exits9 };
      expect(await workloads.runOnce(run, (line) => lines.push(line), never)).toBe(9);
      expect(lines).toEqual(['out']);
    });

    it("ends a command with its signal, and rejects with the signal's reason", async () => {
      const cancel = new AbortController();
      const run = workloads.runOnce(
        { id: crypto.randomUUID(), spec: app.web(1), command: fixture.runs.hangs },
        (line) => void (line === 'out' && cancel.abort(new Error('enough'))),
        cancel.signal,
      );
      await expect(run).rejects.toThrow('enough');
    });

    it('runs a command for a reader, who gets its output and then its exit code', async () => {
      const run = { id: crypto.randomUUID(), spec: app.web(1), command: fixture.runs.exits9, input: false };
      let output = '';
      let exitCode: number | undefined;
      for await (const item of workloads.runAttached(run, never)) {
        if ('exitCode' in item) exitCode = item.exitCode;
        else if ('stream' in item) output += new TextDecoder().decode(item.bytes);
      }
      expect([output, exitCode]).toEqual(['out\n', 9]);
    });

    it('ends a watched command when its signal aborts, and when its reader stops', async () => {
      const run = () => ({ id: crypto.randomUUID(), spec: app.web(1), command: fixture.runs.hangs, input: false });
      const cancel = new AbortController();
      const read = async (): Promise<void> => {
        for await (const item of workloads.runAttached(run(), cancel.signal))
          if ('stream' in item) cancel.abort(new Error('enough'));
      };
      await expect(read()).rejects.toThrow('enough');
      for await (const item of workloads.runAttached(run(), never)) if ('stream' in item) break;
    });
  });
}
