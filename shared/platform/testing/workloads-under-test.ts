import { type AppId, newTenantId, newUuid, type ReleaseId } from '#shared/ids.ts';
import type { Platform } from '#shared/platform/platform.ts';
import type { InstanceFacts, WorkloadSpec } from '#shared/platform/workloads.ts';

/** A platform's workloads, and what a test does with them from outside. */
export interface WorkloadsUnderTest extends Pick<Platform, 'workloads' | 'rollouts' | 'logs'> {
  /** `serve` listens on PORT; `work` runs on; `fail` prints 'no database' and exits with 4; each is what `command` may be. */
  readonly image: string;
  readonly commands: Readonly<Record<'serve' | 'work' | 'fail', string>>;
  /** For `runOnce`: prints 'out', then exits with 9; runs until it is ended. */
  readonly runs: { readonly exits9: string; readonly hangs: string };
  /** A visitor's request, which lasts until its `end`. Undefined when nothing answers at the host. */
  visit(host: string): Visit | undefined;
  /** Percent of the traffic by release version; empty when nothing serves. */
  readWeights(appId: AppId): Promise<Readonly<Record<number, number>>>;
  /** Lets the instance end by itself, with exit code 3. */
  crash(appId: AppId, name: string): Promise<void>;
  stop(): Promise<void>;
}

/** A visitor's request, which a release's instance has until `end`. */
export interface Visit {
  readonly releaseVersion: number;
  /** Names one run of one instance. */
  readonly instance: string;
  end(status?: number): void;
}

/** One app of a test on a platform. */
export interface AppUnderTest {
  readonly appId: AppId;
  readonly host: string;
  /** @param quantities command and quantity by process type */
  specOf(releaseVersion: number, quantities: Readonly<Record<string, readonly [ProcessCommand, number]>>): WorkloadSpec;
  /** With nothing but `quantity` instances of `serve` as web. */
  web(releaseVersion: number, quantity?: number): WorkloadSpec;
  /** Instances that are not being stopped. */
  running(): Promise<InstanceFacts[]>;
  /** `web.1 v2` of each of them. */
  names(): Promise<string[]>;
  /** Which instances answer, of so many requests. */
  instancesThatAnswer(requests: number): Set<string>;
  /** Visitors until `stop`; each is answered at once, with the status of the release that it gets. */
  holdVisitors(status?: (releaseVersion: number) => number): Visitors;
}

/** A command of the image under test. */
export type ProcessCommand = keyof WorkloadsUnderTest['commands'];

/** Visitors who come all the time. */
export interface Visitors {
  /** How many came so far. */
  count(): number;
  /** How many found nothing that answers. */
  refused(): number;
  stop(): void;
}

/** A new app, of which nothing runs yet. */
export function createAppUnderTest(fixture: WorkloadsUnderTest): AppUnderTest {
  const appId = newUuid<AppId>();
  const appName = `app-${appId.slice(0, 8)}`;
  const host = `${appName}.apps.localhost`;
  const tenantId = newTenantId();
  const app: AppUnderTest = {
    appId,
    host,
    specOf: (releaseVersion, quantities) => ({
      appId,
      appName,
      tenantId,
      releaseId: newUuid<ReleaseId>(),
      releaseVersion,
      imageUrl: fixture.image,
      processes: Object.entries(quantities).map(([type, [command, quantity]]) => ({
        type,
        command: fixture.commands[command],
        quantity,
      })),
      config: {},
      bindings: [],
      hosts: [host],
    }),
    web: (releaseVersion, quantity = 1) => app.specOf(releaseVersion, { web: ['serve', quantity] }),
    running: async () => (await fixture.workloads.readInstances(appId)).filter(({ state }) => state !== 'stopping'),
    names: async () => (await app.running()).map(({ name, releaseVersion }) => `${name} v${releaseVersion}`),
    instancesThatAnswer(requests) {
      const answers = Array.from({ length: requests }, () => {
        const visit = fixture.visit(host);
        visit?.end();
        return visit?.instance;
      });
      return new Set(answers.filter((instance) => instance !== undefined));
    },
    holdVisitors(status = () => 200) {
      let count = 0;
      let refused = 0;
      const timer = setInterval(() => {
        count += 1;
        const visit = fixture.visit(host);
        if (visit === undefined) refused += 1;
        else visit.end(status(visit.releaseVersion));
      }, 2);
      return { count: () => count, refused: () => refused, stop: () => clearInterval(timer) };
    },
  };
  return app;
}
