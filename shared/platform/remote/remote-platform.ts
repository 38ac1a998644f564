import type { Clock } from '#shared/clock.ts';
import type { Metrics } from '#shared/platform/metrics.ts';
import type { Platform, PlatformCapabilities } from '#shared/platform/platform.ts';
import { type CallableMethods, createRemotePort, type RemoteCaller } from '#shared/remote/remote-calls.ts';
import type { OfferedPort } from '#shared/remote/remote-server.ts';

/** Drift is of the worker alone. */
type Port = Exclude<keyof Platform, 'capabilities' | 'drift'>;

/**
 * What processes beside the worker may ask of the platform: what the REST API shows and begins, and runs that somebody watches. All else is work of jobs, which
 * run where the driver is.
 */
const callable = {
  caches: { calls: ['ensureCache', 'deleteCache', 'readCache'] },
  builds: { calls: ['cancelBuild', 'checkBuild'] },
  images: { calls: ['imageExists'] },
  workloads: { calls: ['readInstances', 'writeInput'], streams: ['runAttached'] },
  logs: { calls: ['readLogs', 'appendPlatformLog'], streams: ['followLogs'] },
  metrics: { calls: ['readUsage', 'readSeries'] },
  certificates: { calls: ['readCertificate'] },
  addons: { calls: ['findProblem', 'readAddon'] },
  diskSpace: { calls: ['readDiskSpace'] },
  appEnvironments: { calls: [] },
  rollouts: { calls: [] },
} as const satisfies Record<Port, CallableMethods>;

const facts: CallableMethods = { calls: ['read'] };
const factsPort = 'platform';

/** What a driver can do, as another process learns it. */
interface PlatformFacts {
  capabilities: PlatformCapabilities;
  metricsKind: Metrics['kind'];
}

/** The calls that a process with a driver of the platform answers. */
export function offerPlatform(platform: Platform): Record<string, OfferedPort> {
  const read = (): Promise<PlatformFacts> =>
    Promise.resolve({ capabilities: platform.capabilities, metricsKind: platform.metrics.kind });
  const ports = Object.entries(callable).map(([name, methods]) => [name, { methods, driver: platform[name as Port] }] as const);
  return { ...Object.fromEntries(ports), [factsPort]: { methods: facts, driver: { read } } };
}

/** A platform in another process. */
export interface RemotePlatform extends Platform {
  /**
   * Asks what the platform can do, at most every ten seconds. Never rejects: while nobody answers, what was known before stays, or, at
   * the beginning, that builds cannot be confined, so that nobody but the operator's own tenant may build.
   */
  refresh(): Promise<void>;
}

const refreshMilliseconds = 10_000;

const unknownFacts: PlatformFacts = {
  capabilities: {
    pipeline: 'local',
    sandbox: false,
    sandboxProblem: 'The machine that runs the apps cannot be reached.',
  },
  metricsKind: 'usage',
};

/** The platform of the process that `caller` reaches. */
export function createRemotePlatform(caller: RemoteCaller, clock: Pick<Clock, 'now'>): RemotePlatform {
  let known = unknownFacts;
  let readAt = Number.NEGATIVE_INFINITY;
  const port = <Name extends Port>(name: Name): Platform[Name] => createRemotePort<Platform[Name]>(caller, name, callable[name]);
  const metrics = port('metrics');
  return {
    get capabilities() {
      return known.capabilities;
    },
    get metrics() {
      // Proxies have no property of their own that could say it.
      const read = Object.fromEntries(callable.metrics.calls.map((name) => [name, (metrics as never)[name]]));
      return { kind: known.metricsKind, ...read } as Metrics;
    },
    caches: port('caches'),
    builds: port('builds'),
    images: port('images'),
    workloads: port('workloads'),
    logs: port('logs'),
    certificates: port('certificates'),
    addons: port('addons'),
    diskSpace: port('diskSpace'),
    appEnvironments: port('appEnvironments'),
    rollouts: port('rollouts'),
    async refresh() {
      const now = clock.now().getTime();
      if (now - readAt < refreshMilliseconds) return;
      readAt = now;
      try {
        known = (await caller.call(factsPort, 'read', [])) as PlatformFacts;
      } catch {
        // Asked again by the next call.
        readAt = Number.NEGATIVE_INFINITY;
      }
    },
  };
}
