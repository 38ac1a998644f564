import type { Clock } from '#shared/clock.ts';
import type { AppId } from '#shared/ids.ts';
import type { InstanceFacts, ProcessSpec, WorkloadSpec } from '#shared/platform/workloads.ts';
import type { Router } from '#shared/routing/router.ts';
import type { FakeAppLogs } from './app-logs.ts';

/** What the fakes of Workloads and Rollouts need. */
export interface FakeAppsOptions {
  router: Router;
  logs: FakeAppLogs;
  clock: Clock;
  /** What becomes of a program of an image; when not given, all come up and all commands succeed. */
  script?: ProgramScript | undefined;
}

/** What becomes of the programs that a fake platform is asked to run. */
export interface ProgramScript {
  /** Undefined: it comes up. */
  boot?(imageUrl: string, process: ProcessSpec): { exitCode: number; output: readonly string[] } | undefined;
  /**
   * Gives the exit code. Rejects with the signal's reason when that aborts.
   * @param input all of its standard input, once it has ended; left out for runs that nobody watches
   */
  run?(command: string, line: (text: string) => void, signal: AbortSignal, input?: () => Promise<string>): Promise<number>;
}

/** The apps that the fakes of Workloads and Rollouts share. */
export interface FakeApps extends FakeAppsOptions {
  readonly script: ProgramScript;
  readonly apps: Map<AppId, FakeAppWorkload>;
}

/** To be shared by `createFakeWorkloads`, `createFakeRollouts` and `createFakeUsageMetrics`. */
export function createFakeApps(options: FakeAppsOptions): FakeApps {
  return { ...options, script: options.script ?? {}, apps: new Map() };
}

/** An app that is added where it is not known yet. */
export function openFakeApp(fake: FakeApps, appId: AppId): FakeAppWorkload {
  const app = fake.apps.get(appId) ?? new FakeAppWorkload(fake);
  fake.apps.set(appId, app);
  return app;
}

/** An instance, with the key that routes name it by. */
export interface FakeInstance extends InstanceFacts {
  readonly key: string;
}

/** Why a program did not come up. */
export interface FakeBootFailure {
  cause: string;
  output: readonly string[];
}

let nextPort = 20_000;

/** An app without processes: what would run is listed and routed. One operation at a time is the caller's care. */
export class FakeAppWorkload {
  readonly #fake: FakeApps;
  live: WorkloadSpec | undefined;
  candidate: WorkloadSpec | undefined;
  instances: readonly FakeInstance[] = [];
  weights: ReadonlyMap<number, number> = new Map();

  constructor(fake: FakeApps) {
    this.#fake = fake;
  }

  /** Brings the router to `weights` (release version → percent) and to the instances there are. */
  async applyRoute(spec: WorkloadSpec, weights: readonly (readonly [version: number, weight: number])[]): Promise<void> {
    this.weights = new Map(weights);
    const backends = weights.map(([releaseVersion, weight]) => ({
      releaseVersion,
      weight,
      instances: this.instances
        .filter((instance) => instance.type === 'web' && instance.releaseVersion === releaseVersion)
        .map(({ key }) => ({ key, host: '127.0.0.1', port: nextPort++ })),
    }));
    await this.#fake.router.applyRoute({ appId: spec.appId, appName: spec.appName, hosts: spec.hosts, backends });
  }

  /** Undefined when all wanted instances are there now. */
  startMissing(spec: WorkloadSpec): FakeBootFailure | undefined {
    const { logs, script } = this.#fake;
    for (const process of spec.processes) {
      for (let index = 1; index <= process.quantity; index += 1) {
        const name = `${process.type}.${index}`;
        if (this.instances.some((instance) => instance.name === name && instance.releaseVersion === spec.releaseVersion))
          continue;
        const exit = script.boot?.(spec.imageUrl, process);
        for (const message of exit?.output ?? [])
          logs.write(spec.appId, { process: name, releaseVersion: spec.releaseVersion, message });
        if (exit !== undefined)
          return { cause: `${name} exited with code ${exit.exitCode} before it listened on PORT`, output: exit.output };
        this.instances = [...this.instances, this.#newInstance(spec.releaseVersion, process.type, name)];
      }
    }
    return undefined;
  }

  /** Back to the live release alone. */
  async discardCandidate(): Promise<void> {
    const { live, candidate } = this;
    const spec = live ?? candidate;
    this.candidate = undefined;
    this.instances = this.instances.filter((instance) => instance.releaseVersion === live?.releaseVersion);
    if (spec !== undefined) await this.applyRoute(spec, live === undefined ? [] : [[live.releaseVersion, 100]]);
  }

  /** Makes `spec` all that runs. */
  async makeLive(spec: WorkloadSpec): Promise<void> {
    this.live = spec;
    this.candidate = undefined;
    this.instances = this.instances.filter(
      ({ releaseVersion, type, name }) =>
        releaseVersion === spec.releaseVersion &&
        Number(name.slice(type.length + 1)) <= (spec.processes.find((process) => process.type === type)?.quantity ?? 0),
    );
    await this.applyRoute(spec, [[spec.releaseVersion, 100]]);
  }

  /** New instances in the place of all there are. */
  async restart(): Promise<void> {
    if (this.live === undefined) return;
    this.instances = this.instances.map(({ releaseVersion, type, name }) => this.#newInstance(releaseVersion, type, name));
    await this.applyRoute(this.live, [...this.weights]);
  }

  /** The instance ends by itself, and is started again at once. */
  crash(name: string): void {
    this.instances = this.instances.map((instance) =>
      instance.name === name
        ? { ...this.#newInstance(instance.releaseVersion, instance.type, name), restarts: instance.restarts + 1 }
        : instance,
    );
  }

  #newInstance(releaseVersion: number, type: string, name: string): FakeInstance {
    const startedAt = this.#fake.clock.now();
    return { key: crypto.randomUUID(), name, type, state: 'up', releaseVersion, startedAt, restarts: 0 };
  }
}
