import type { Clock } from '#shared/clock.ts';
import type { AppId } from '#shared/ids.ts';
import { decideStep, nextWeight, type TrafficCounts } from '#shared/platform/rollout-decision.ts';
import type {
  InstanceFacts,
  ProcessSpec,
  RolloutFacts,
  RolloutPlan,
  WorkloadSpec,
  Workloads,
} from '#shared/platform/workloads.ts';
import type { Router } from '#shared/routing/routing.ts';
import type { FakeAppLogs } from './app-logs.ts';

export interface FakeWorkloadsOptions {
  router: Router;
  logs: FakeAppLogs;
  clock: Clock;
  /** What becomes of a program of an image; when not given, all come up and all commands succeed. */
  script?: ProgramScript;
}

export interface ProgramScript {
  /** Undefined: it comes up. */
  boot?(imageUrl: string, process: ProcessSpec): { exitCode: number; output: readonly string[] } | undefined;
  /** Rejects with the signal's reason when that aborts. */
  run?(command: string, line: (text: string) => void, signal: AbortSignal): Promise<number>;
}

export interface FakeWorkloads extends Workloads {
  /** The instance ends by itself, and is started again at once. */
  crash(appId: AppId, name: string): void;
  /** The instance works for so long more, and has so much in memory from now on. */
  use(appId: AppId, name: string, usage: { cpuSeconds: number; memoryBytes: number }): void;
}

interface Instance extends InstanceFacts {
  readonly key: string;
}

interface App {
  live: WorkloadSpec | undefined;
  candidate: WorkloadSpec | undefined;
  instances: Instance[];
  weights: ReadonlyMap<number, number>;
}

const pollMilliseconds = 5;

/** What an instance uses that was never told to work. */
const idle = { cpuSeconds: 0, memoryBytes: 20 * 1024 * 1024 };

/** Workloads without processes: what would run is listed and routed. One operation an app at a time is the caller's care. */
export function createFakeWorkloads({ router, logs, clock, script = {} }: FakeWorkloadsOptions): FakeWorkloads {
  const apps = new Map<AppId, App>();
  const used = new Map<string, { cpuSeconds: number; memoryBytes: number }>();
  let nextPort = 20_000;

  function appOf(appId: AppId): App {
    const app = apps.get(appId) ?? { live: undefined, candidate: undefined, instances: [], weights: new Map() };
    apps.set(appId, app);
    return app;
  }

  async function applyRoute(app: App, spec: WorkloadSpec, weights: ReadonlyMap<number, number>): Promise<void> {
    app.weights = weights;
    const backends = [...weights].map(([releaseVersion, weight]) => ({
      releaseVersion,
      weight,
      instances: app.instances
        .filter((instance) => instance.type === 'web' && instance.releaseVersion === releaseVersion)
        .map(({ key }) => ({ key, host: '127.0.0.1', port: nextPort++ })),
    }));
    await router.applyRoute({ appId: spec.appId, appName: spec.appName, hosts: spec.hosts, backends });
  }

  /** Undefined when all wanted instances are there now. */
  function startMissing(app: App, spec: WorkloadSpec): { cause: string; output: readonly string[] } | undefined {
    for (const process of spec.processes) {
      for (let index = 1; index <= process.quantity; index += 1) {
        const name = `${process.type}.${index}`;
        if (app.instances.some((instance) => instance.name === name && instance.releaseVersion === spec.releaseVersion)) continue;
        const exit = script.boot?.(spec.imageUrl, process);
        for (const message of exit?.output ?? [])
          logs.write(spec.appId, { process: name, releaseVersion: spec.releaseVersion, message });
        if (exit !== undefined)
          return { cause: `${name} exited with code ${exit.exitCode} before it listened on PORT`, output: exit.output };
        app.instances.push(newInstance(spec, process.type, name));
      }
    }
    return undefined;
  }

  function newInstance(spec: WorkloadSpec, type: string, name: string, restarts = 0): Instance {
    return {
      key: crypto.randomUUID(),
      name,
      type,
      state: 'up',
      releaseVersion: spec.releaseVersion,
      startedAt: clock.now(),
      restarts,
    };
  }

  async function giveUp(app: App, spec: WorkloadSpec): Promise<void> {
    await applyRoute(app, app.live ?? spec, new Map(app.live === undefined ? [] : [[app.live.releaseVersion, 100]]));
    app.instances = app.instances.filter((instance) => instance.releaseVersion === app.live?.releaseVersion);
    app.candidate = undefined;
  }

  async function promote(app: App, spec: WorkloadSpec): Promise<void> {
    app.live = spec;
    app.candidate = undefined;
    app.instances = app.instances.filter(
      ({ releaseVersion, type, name }) =>
        releaseVersion === spec.releaseVersion &&
        Number(name.slice(type.length + 1)) <= (spec.processes.find((process) => process.type === type)?.quantity ?? 0),
    );
    await applyRoute(app, spec, new Map([[spec.releaseVersion, 100]]));
  }

  /** Undefined when the step is passed. */
  async function* judgeStep(
    app: App,
    spec: WorkloadSpec,
    weight: number,
    plan: RolloutPlan,
    signal: AbortSignal,
  ): AsyncGenerator<RolloutFacts, string | undefined, undefined> {
    const counts = async (version: number | undefined): Promise<TrafficCounts> =>
      (await router.readTraffic(spec.appId)).find(({ releaseVersion }) => releaseVersion === version) ?? {
        requests: 0,
        errors: 0,
      };
    const begun = clock.now().getTime();
    const atStart = await counts(spec.releaseVersion);
    for (;;) {
      if (signal.aborted) return 'canceled';
      const [fresh, old] = await Promise.all([counts(spec.releaseVersion), counts(app.live?.releaseVersion)]);
      const decision = decideStep(
        {
          weight,
          secondsOnStep: (clock.now().getTime() - begun) / 1000,
          secondsSinceRequest: fresh.requests + old.requests === 0 ? Number.POSITIVE_INFINITY : 0,
          fresh: { requests: fresh.requests - atStart.requests, errors: fresh.errors - atStart.errors },
          old,
          crash: undefined,
        },
        plan,
      );
      if (decision.action === 'abort') return decision.detail;
      if (decision.action === 'raise') {
        yield { phase: 'progressing', weight, ...(decision.detail === undefined ? {} : { detail: decision.detail }) };
        return undefined;
      }
      await clock.sleep(pollMilliseconds);
    }
  }

  return {
    async *rollOut(spec, plan, signal) {
      const app = appOf(spec.appId);
      if (app.live?.releaseVersion === spec.releaseVersion) {
        yield { phase: 'live', weight: 100 };
        return;
      }
      if (app.candidate?.releaseVersion !== spec.releaseVersion) await giveUp(app, spec);
      app.candidate = spec;
      let weight = app.weights.get(spec.releaseVersion) ?? 0;
      yield { phase: 'starting', weight };
      const failure = startMissing(app, spec);
      let problem = failure?.cause ?? (signal.aborted ? 'canceled' : undefined);
      while (problem === undefined && weight < 100) {
        weight = app.live === undefined ? 100 : nextWeight(plan.weights, weight);
        const old = app.live?.releaseVersion;
        await applyRoute(
          app,
          spec,
          new Map(
            old === undefined || weight === 100
              ? [[spec.releaseVersion, 100]]
              : [
                  [old, 100 - weight],
                  [spec.releaseVersion, weight],
                ],
          ),
        );
        yield { phase: 'progressing', weight };
        if (weight < 100) problem = yield* judgeStep(app, spec, weight, plan, signal);
      }
      if (problem !== undefined) {
        await giveUp(app, spec);
        yield { phase: 'aborted', weight: 0, detail: problem, ...(failure === undefined ? {} : { output: failure.output }) };
        return;
      }
      await promote(app, spec);
      yield { phase: 'live', weight: 100 };
    },
    async ensureWorkload(spec) {
      const app = appOf(spec.appId);
      const failure = startMissing(app, spec);
      if (failure === undefined || app.live === undefined || app.live.releaseVersion === spec.releaseVersion)
        await promote(app, spec);
      else await giveUp(app, spec);
    },
    async restartWorkload(appId) {
      const app = apps.get(appId);
      const live = app?.live;
      if (app === undefined || live === undefined) return;
      app.instances = app.instances.map(({ type, name }) => newInstance(live, type, name));
      await applyRoute(app, live, app.weights);
    },
    async deleteWorkload(appId) {
      const routed = await router.deleteRoute(appId);
      return apps.delete(appId) || routed;
    },
    async readInstances(appId) {
      return (apps.get(appId)?.instances ?? [])
        .map(({ key: _key, ...facts }) => facts)
        .sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }) || a.releaseVersion - b.releaseVersion);
    },
    async readUsage(appId) {
      const traffic = [...(await router.readPastTraffic(appId)), ...(await router.readTraffic(appId))];
      return {
        instances: apps.get(appId)?.instances.map(({ key, type }) => ({ run: key, type, ...idle, ...used.get(key) })) ?? [],
        traffic,
      };
    },
    use(appId, name, usage) {
      const instance = apps.get(appId)?.instances.find((candidate) => candidate.name === name);
      if (instance === undefined) return;
      const { cpuSeconds } = { ...idle, ...used.get(instance.key) };
      used.set(instance.key, { cpuSeconds: cpuSeconds + usage.cpuSeconds, memoryBytes: usage.memoryBytes });
    },
    async runOnce(_spec, command, line, signal) {
      signal.throwIfAborted();
      return (await script.run?.(command, line, signal)) ?? 0;
    },
    crash(appId, name) {
      const app = apps.get(appId);
      if (app === undefined) return;
      app.instances = app.instances.map((instance) =>
        instance.name === name
          ? { ...instance, key: crypto.randomUUID(), startedAt: clock.now(), restarts: instance.restarts + 1 }
          : instance,
      );
      void logs.appendPlatformLog(appId, `${name} exited with code 3, restarting in 1 s`);
    },
  };
}
