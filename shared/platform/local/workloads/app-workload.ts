import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '#shared/errors.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import { replaceFile } from '#shared/files/replace-file.ts';
import type { AppId } from '#shared/ids.ts';
import type { ProcessSpec, WorkloadSpec } from '#shared/platform/workloads.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';
import type { Router } from '#shared/routing/router.ts';
import type { SecretBox } from '#shared/secret-box.ts';
import { newInstanceKey } from '../processes/instance-key.ts';
import { type AppReleases, parseAppReleases } from './app-releases.ts';
import { type Changes, createChanges } from './changes.ts';
import type { InstanceRecord } from './instance-store.ts';
import { planRoute } from './route-plan.ts';
import { type InstanceDependencies, SupervisedInstance } from './supervised-instance.ts';

/** What an app's workload is given. */
export interface AppDependencies extends InstanceDependencies {
  router: Router;
  secretBox: SecretBox;
  /** `workloads/<app_id>`, absolute. */
  directory: string;
  drainSeconds: number;
  drainPollMilliseconds: number;
  assetSeconds: number;
}

/** The first instance of several that did not come up. */
export interface BootFailure {
  instance: SupervisedInstance;
  cause: string;
}

/**
 * All of one app that runs on this machine. Rollouts, scaling and restarts are made of its methods; one such operation runs
 * at a time (`workloads.ts`).
 */
export class AppWorkload {
  readonly appId: AppId;
  readonly deps: AppDependencies;
  readonly instances = new Set<SupervisedInstance>();
  /** Of releases, weights and states of instances. */
  readonly changes: Changes = createChanges();
  weights = new Map<number, number>();
  #releases: AppReleases = {};
  #routing: Promise<void> = Promise.resolve();
  #lastRoute: AppRoute | undefined;
  readonly #retiring = new Set<Promise<void>>();
  /** Keys of instances that are being stopped, and are still asked for what the present release does not have. */
  readonly #askedForAssets = new Set<string>();
  /** Aborted when nothing is waited for any more: what drains is left as it is, or ended at once. */
  readonly #closing = new AbortController();
  #detached = false;
  #routeDeleted = false;

  constructor(appId: AppId, deps: AppDependencies) {
    this.appId = appId;
    this.deps = deps;
  }

  get live(): WorkloadSpec | undefined {
    return this.#releases.live;
  }

  get candidate(): WorkloadSpec | undefined {
    return this.#releases.candidate;
  }

  /** Stored so that a later control plane can restart what crashes; sealed, since the app's variables are in it. */
  async setReleases(releases: AppReleases): Promise<void> {
    this.#releases = releases;
    this.changes.notify();
    await mkdir(this.deps.directory, { recursive: true, mode: 0o700 });
    const sealed = await this.deps.secretBox.seal(JSON.stringify(releases), this.#purpose);
    await replaceFile(this.#releasesPath, sealed, 0o600);
  }

  /** Reads what an earlier control plane stored; starts and ends nothing. */
  async load(): Promise<void> {
    const sealed = await readFile(this.#releasesPath, 'utf8').catch(ifMissing(undefined));
    if (sealed !== undefined) this.#releases = parseAppReleases(await this.deps.secretBox.open(sealed, this.#purpose));
    for (const record of await this.deps.store.list()) {
      const { port, network, target } = record;
      if (port !== 0) this.deps.ports.hold(port);
      if (network !== undefined) this.deps.programs.networks?.hold(this.appId, { number: network, port, target });
      const alive = record.program !== undefined && (await this.deps.programs.isAlive(record.program));
      const state = alive || record.state !== 'up' ? record.state : 'crashed';
      this.#add(this.#specOf(record.releaseVersion), { ...record, state }, true);
    }
    this.#lastRoute = await this.deps.router.readRoute(this.appId);
    this.weights = new Map(this.#lastRoute?.backends.map(({ releaseVersion, weight }) => [releaseVersion, weight]));
  }

  /** Begins to supervise the instances that `load` found. */
  begin(): void {
    for (const instance of [...this.instances]) {
      const known = this.#specOf(instance.record.releaseVersion) !== undefined;
      if (instance.record.state === 'stopping' || !known) this.retire(instance);
      else instance.begin();
    }
  }

  listOf(releaseVersion: number, type?: string): SupervisedInstance[] {
    return [...this.instances]
      .filter(({ record }) => record.releaseVersion === releaseVersion && record.state !== 'stopping')
      .filter(({ record }) => type === undefined || record.type === type)
      .sort((a, b) => a.record.index - b.record.index);
  }

  /** Starts the instances of a process type that are missing. @returns those */
  startMissing(spec: WorkloadSpec, process: ProcessSpec): SupervisedInstance[] {
    const taken = new Set(this.listOf(spec.releaseVersion, process.type).map(({ record }) => record.index));
    return Array.from({ length: process.quantity }, (_, at) => at + 1)
      .filter((index) => !taken.has(index))
      .map((index) => this.start(spec, process.type, index));
  }

  start(spec: WorkloadSpec, type: string, index: number): SupervisedInstance {
    if (this.#closing.signal.aborted) throw new AppError('internal', 'The platform is stopping.');
    const instance = this.#add(
      spec,
      {
        key: newInstanceKey(type, index, spec.releaseVersion),
        type,
        index,
        releaseVersion: spec.releaseVersion,
        state: 'new',
        port: 0,
        startedAt: this.deps.clock.now().toISOString(),
        restarts: 0,
      },
      false,
    );
    instance.begin();
    return instance;
  }

  /** Resolves with undefined once all are up, or with the first that failed. Rejects with the signal's reason. */
  async waitUntilUp(instances: readonly SupervisedInstance[], signal: AbortSignal): Promise<BootFailure | undefined> {
    const failure = Promise.withResolvers<BootFailure>();
    const all = instances.map(async (instance) => {
      const boot = await instance.firstBoot;
      if (!boot.up) failure.resolve({ instance, cause: boot.cause });
    });
    return Promise.race([failure.promise, Promise.all(all).then(() => undefined), rejectedOn(signal)]);
  }

  async setWeights(weights: readonly (readonly [version: number, weight: number])[]): Promise<void> {
    this.weights = new Map(weights);
    await this.syncRoute();
    this.changes.notify();
  }

  /** Writes a line to the app's log in the platform's own name. */
  logLine(message: string, releaseVersion?: number): Promise<void> {
    return this.deps.output.appendPlatformLine(message, releaseVersion);
  }

  /** Makes the gateway follow what runs now. */
  syncRoute(): Promise<void> {
    const next = this.#routing.then(() => this.#applyRoute());
    this.#routing = next.catch(() => undefined);
    return next;
  }

  /** Gives one release all traffic. Those that had some are asked for assets until their instances end. */
  async giveAllTraffic(releaseVersion: number): Promise<void> {
    const versions = new Set([...this.weights.keys(), releaseVersion]);
    const oldestFirst = [...versions].toSorted((one, other) => one - other);
    await this.setWeights(oldestFirst.map((version) => [version, version === releaseVersion ? 100 : 0] as const));
  }

  /**
   * Takes instances out of traffic, waits until they have answered what they had begun, and ends them. `outOfTraffic`
   * resolves when they get no more visitors, `gone` when they have ended. Neither rejects.
   */
  retire(...instances: SupervisedInstance[]): { outOfTraffic: Promise<void>; gone: Promise<void> } {
    for (const { record } of instances)
      if (record.type === 'web' && record.state === 'up' && this.weights.get(record.releaseVersion) === 0)
        this.#askedForAssets.add(record.key);
    const outOfTraffic = Promise.all(instances.map((instance) => instance.markStopping())).then(() => this.syncRoute());
    const gone = outOfTraffic
      .catch((error: unknown) => this.deps.log.warn('the gateway did not accept a route', { appId: this.appId, error }))
      .then(async () => {
        await Promise.all(instances.map((instance) => this.#drainAndStop(instance)));
      });
    this.#retiring.add(gone);
    void gone.then(() => this.#retiring.delete(gone));
    return { outOfTraffic: outOfTraffic.catch(() => undefined), gone };
  }

  /** Ends instances without draining them: those that have no traffic, or all of an app that is deleted. */
  async stop(...instances: SupervisedInstance[]): Promise<void> {
    await Promise.all(
      instances.map(async (instance) => {
        await instance.stop();
        this.instances.delete(instance);
      }),
    );
  }

  /**
   * Ends everything without draining it. The ports are removed from the route first, since another app may get them soon.
   * @param route 'delete' removes the app's whole route
   * @returns whether the gateway had a route of the app
   */
  async stopAll(route: 'keep' | 'delete'): Promise<boolean> {
    this.#closing.abort();
    const all = [...this.instances];
    this.#askedForAssets.clear();
    await Promise.all(all.map((instance) => instance.markStopping()));
    const removed = route === 'delete' ? this.#deleteRoute() : this.syncRoute().then(() => true);
    const hadRoute = await removed.catch((error: unknown) => {
      this.deps.log.warn('the gateway did not accept a route', { appId: this.appId, error });
      return false;
    });
    await Promise.all([this.stop(...all), ...this.#retiring]);
    return hadRoute;
  }

  /** Leaves all processes running. The next control plane goes on to drain what is draining. */
  async detach(): Promise<void> {
    this.#detached = true;
    this.#closing.abort();
    await Promise.all([...this.instances].map((instance) => instance.detach()));
    await Promise.all(this.#retiring);
  }

  /** Deletes what is stored of the app, except its log. */
  async forget(): Promise<void> {
    this.#releases = {};
    this.weights.clear();
    this.changes.notify();
    await rm(this.#releasesPath, { force: true });
    await rm(join(this.deps.directory, 'instances'), { recursive: true, force: true });
  }

  get #releasesPath(): string {
    return join(this.deps.directory, 'releases.sealed');
  }

  get #purpose(): string {
    return `workload:${this.appId}`;
  }

  #specOf(releaseVersion: number): WorkloadSpec | undefined {
    const { live, candidate } = this.#releases;
    return [live, candidate].find((spec) => spec?.releaseVersion === releaseVersion);
  }

  #add(spec: WorkloadSpec | undefined, record: InstanceRecord, found: boolean): SupervisedInstance {
    const instance = new SupervisedInstance(this.deps, spec, record, found, () => {
      this.changes.notify();
      this.#syncSoon();
    });
    this.instances.add(instance);
    return instance;
  }

  /** After an instance came up or went down: updates the route, now or as soon as the gateway answers again. */
  #syncSoon(): void {
    if (this.#closing.signal.aborted) return;
    this.syncRoute().catch((error: unknown) => {
      this.deps.log.warn('the gateway did not accept a route; trying again', { appId: this.appId, error });
      this.deps.clock.sleep(1000, this.#closing.signal).then(
        () => this.#syncSoon(),
        () => undefined,
      );
    });
  }

  #deleteRoute(): Promise<boolean> {
    this.#routeDeleted = true;
    const deleted = this.#routing.then(() => this.deps.router.deleteRoute(this.appId));
    this.#routing = deleted.then(
      () => undefined,
      () => undefined,
    );
    return deleted;
  }

  async #applyRoute(): Promise<void> {
    if (this.#routeDeleted) return;
    const { appName, hosts, sessionAffinity } = this.candidate ?? this.live ?? this.#lastRoute ?? {};
    if (appName === undefined || hosts === undefined || hosts.length === 0) return;
    const instances = [...this.instances].map(({ record }) =>
      this.#askedForAssets.has(record.key) ? { ...record, state: 'up' as const } : record,
    );
    const route = planRoute({ appId: this.appId, appName, hosts, sessionAffinity, weights: this.weights, instances });
    if (JSON.stringify(route) === JSON.stringify(this.#lastRoute)) return;
    await this.deps.router.applyRoute(route);
    this.#lastRoute = route;
  }

  async #drainAndStop(instance: SupervisedInstance): Promise<void> {
    const { key, type } = instance.record;
    try {
      if (this.#askedForAssets.has(key)) await this.#leaveRoute(key);
      if (type === 'web') await this.#drain(key);
      if (!this.#detached) await this.stop(instance);
    } catch (error) {
      this.deps.log.error('an instance could not be stopped', { instance: instance.record.key, error });
    }
  }

  /** Its port may be another's as soon as it has ended. */
  async #leaveRoute(key: string): Promise<void> {
    const { clock, assetSeconds } = this.deps;
    await clock.sleep(assetSeconds * 1000, this.#closing.signal).catch(() => undefined);
    this.#askedForAssets.delete(key);
    if (!this.#detached) await this.syncRoute();
  }

  async #drain(key: string): Promise<void> {
    const { router, clock, drainSeconds, drainPollMilliseconds } = this.deps;
    const deadline = AbortSignal.any([AbortSignal.timeout(drainSeconds * 1000), this.#closing.signal]);
    // A gateway that does not answer has no requests in flight that could be waited for.
    while (!deadline.aborted && (await router.readInFlight(key).catch(() => 0)) > 0) {
      await clock.sleep(drainPollMilliseconds, deadline).catch(() => undefined);
    }
  }
}

function rejectedOn(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
