import { AppError } from '#shared/errors.ts';
import type { ReleaseAnswers, RolloutFacts } from '#shared/platform/rollouts.ts';
import type { TrafficFacts } from '#shared/platform/traffic.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import type { AppWorkload, BootFailure } from './app-workload.ts';
import { askInstance, whereToAsk } from './check-health.ts';
import { discardCandidate, ensureRelease, makeLive, moveTraffic, startWeb, switchOtherTypes } from './release-moves.ts';
import type { SupervisedInstance } from './supervised-instance.ts';

/** What a rollout is of, and what it needs. */
export interface AppRolloutOptions {
  app: AppWorkload;
  spec: WorkloadSpec;
  /** Percentages of traffic, ascending. */
  weights: readonly number[];
  /** Newest lines an instance wrote. */
  readLastLines(instance: SupervisedInstance): Promise<readonly string[]>;
  /** How often traffic is read while both releases get some. */
  trafficPollMilliseconds: number;
}

/** How often an instance is asked at most. */
const mostQuestions = 3;

/** How often facts are reported while instances are being started. */
const startingPollMilliseconds = 1000;

/** The cause when a rollout ends that was not aborted: the app was scaled, restored or given another release meanwhile. */
export const takenOver = 'Another release took its place.';

/**
 * The rollout of one release of an app. Its orders (`begin`, `advance`, `promote`, `abort`) run one at a time. An earlier
 * process may have carried out a part of each, so they start from what runs and from the gateway's route.
 */
export class AppRollout {
  readonly spec: WorkloadSpec;
  readonly #app: AppWorkload;
  readonly #weights: readonly number[];
  readonly #options: AppRolloutOptions;
  readonly #canceled = new AbortController();
  /** The candidate is stored. */
  #begun = false;
  /** The instances that get traffic are up. */
  #serving = false;
  #promoting = false;
  #aborting = false;
  #crashed: BootFailure | undefined;
  #end: 'live' | 'aborted' | 'failed' | undefined;
  #failure: RolloutFacts['failure'];

  constructor(options: AppRolloutOptions) {
    this.#options = options;
    this.#app = options.app;
    this.#weights = options.weights;
    this.spec = options.spec;
  }

  /** False once the watch has nothing more to report. */
  get isUnderWay(): boolean {
    return this.#phase === 'starting' || this.#phase === 'serving';
  }

  /** Interrupts `begin` and `promote` where they wait for instances. */
  cancel(): void {
    this.#canceled.abort();
  }

  /** Starts the release and gives it its first share of the traffic. */
  begin(over: AbortSignal): Promise<void> {
    return this.#carryOut(over, async (canceled) => {
      const { spec } = this;
      const app = this.#app;
      canceled.throwIfAborted();
      if (app.live?.releaseVersion === spec.releaseVersion) {
        await ensureRelease(app, spec, canceled);
        return this.#finish('live');
      }
      // Of a rollout that an earlier process left.
      if (app.candidate !== undefined && app.candidate.releaseVersion !== spec.releaseVersion) await discardCandidate(app);
      await app.setReleases({ live: app.live, candidate: spec });
      this.#begun = true;
      this.#crashed = await startWeb(app, spec, canceled);
      if (this.#crashed !== undefined) return app.changes.notify();
      if (this.#weight === 0) await moveTraffic(app, spec.releaseVersion, this.#firstWeight());
      this.#serving = true;
      app.changes.notify();
    });
  }

  /** Moves on to the weight after `fromWeight`; does nothing at another weight. */
  advance(fromWeight: number, over: AbortSignal): Promise<void> {
    return this.#carryOut(over, async () => {
      if (this.#phase !== 'serving' || this.#weight !== fromWeight) return;
      await moveTraffic(this.#app, this.spec.releaseVersion, weightAfter(this.#weights, fromWeight));
    });
  }

  /** Gives the release all traffic and makes it the live one. */
  promote(over: AbortSignal): Promise<void> {
    return this.#carryOut(over, async (canceled) => {
      if (this.#phase !== 'serving' || this.#crashed !== undefined) return;
      this.#promoting = true;
      const app = this.#app;
      const { releaseVersion } = this.spec;
      if (this.#weight < 100) await moveTraffic(app, releaseVersion, 100);
      this.#crashed = await switchOtherTypes(app, this.spec, canceled);
      if (this.#crashed !== undefined) return app.changes.notify();
      await makeLive(app, this.spec);
      await app.logLine(`Release v${releaseVersion} is live`, releaseVersion);
      this.#finish('live');
    }).finally(() => {
      this.#promoting = false;
    });
  }

  /** Gives the live release all traffic back, and ends this one. */
  abort(reason: string, over: AbortSignal): Promise<void> {
    return this.#carryOut(over, async () => {
      const app = this.#app;
      const { releaseVersion } = this.spec;
      if (this.#end === 'aborted' || this.#end === 'live' || app.live?.releaseVersion === releaseVersion) return;
      this.#aborting = true;
      const output = await this.#readOutput();
      if (app.candidate?.releaseVersion === releaseVersion) await discardCandidate(app);
      await app.logLine(`Release v${releaseVersion} was aborted: ${reason}`, releaseVersion);
      this.#finish('aborted', { cause: reason, output });
    }).finally(() => {
      this.#aborting = false;
    });
  }

  /** Asks one instance of a release. */
  async ask(whom: 'candidate' | 'stable', over: AbortSignal): Promise<ReleaseAnswers | undefined> {
    const spec = whom === 'candidate' ? this.spec : this.#app.live;
    const [instance] = spec === undefined ? [] : this.#app.listOf(spec.releaseVersion, 'web');
    if (instance === undefined) return undefined;
    const path = this.spec.healthPath ?? '/';
    const answers: (number | string)[] = [];
    while (answers.length < mostQuestions) {
      const answer = await askInstance({ ...whereToAsk(instance.record, this.spec), path }, over);
      answers.push(answer);
      const isGood = typeof answer === 'number' && answer < 500;
      if (typeof answer === 'string' || isGood === (whom === 'candidate')) break;
    }
    return { path, isOwnPath: this.spec.healthPath !== undefined, answers };
  }

  /** @param closing aborts when the platform stops: then the watch rejects */
  async *watch(signal: AbortSignal, closing: AbortSignal): AsyncGenerator<RolloutFacts, void, undefined> {
    const { changes } = this.#app;
    const over = AbortSignal.any([signal, closing]);
    while (!signal.aborted) {
      if (closing.aborted)
        throw new AppError('internal', 'The platform is stopping. The rollout goes on when it is started again.');
      const seen = changes.count;
      const facts = await this.#readFacts();
      yield facts;
      if (facts.phase !== 'starting' && facts.phase !== 'serving') return;
      await changes.wait(seen, this.#serving ? this.#options.trafficPollMilliseconds : startingPollMilliseconds, over);
    }
  }

  async #readFacts(): Promise<RolloutFacts> {
    const { traffic, secondsSinceRequest } = await readTraffic(this.#app, this.spec.releaseVersion);
    // Read at one moment, after the last wait: phase, weight and crash belong together.
    const phase = this.#phase;
    const crashed = phase === 'starting' || phase === 'serving' ? this.#findCrash() : undefined;
    return {
      releaseId: this.spec.releaseId,
      releaseVersion: this.spec.releaseVersion,
      phase,
      weight: phase === 'live' ? 100 : phase === 'aborted' ? 0 : this.#weight,
      traffic,
      secondsSinceRequest,
      crash: crashed === undefined ? undefined : `${crashed.instance.name} ${crashed.cause}`,
      failure: this.#failure ?? (phase === 'aborted' ? { cause: takenOver, output: [] } : undefined),
    };
  }

  get #phase(): RolloutFacts['phase'] {
    if (this.#end !== undefined) return this.#end;
    const { live, candidate } = this.#app;
    const isThere = [live, candidate].some((release) => release?.releaseVersion === this.spec.releaseVersion);
    // Another operation on the app has discarded it.
    if (this.#begun && !isThere && !this.#aborting) return 'aborted';
    return this.#serving ? 'serving' : 'starting';
  }

  get #weight(): number {
    return this.#app.weights.get(this.spec.releaseVersion) ?? 0;
  }

  /** Without another release or without visitors there is nothing to compare. */
  #firstWeight(): number {
    const hasWeb = this.spec.processes.some(({ type }) => type === 'web');
    return this.#app.live === undefined || !hasWeb ? 100 : weightAfter(this.#weights, 0);
  }

  #findCrash(): BootFailure | undefined {
    if (this.#crashed !== undefined) return this.#crashed;
    if (!this.#serving || this.#promoting) return undefined;
    const instance = this.#app.listOf(this.spec.releaseVersion).find((each) => each.isRecovering);
    return instance && { instance, cause: instance.lastCause };
  }

  async #readOutput(): Promise<readonly string[]> {
    const instance = this.#findCrash()?.instance ?? this.#app.listOf(this.spec.releaseVersion, 'web')[0];
    return instance === undefined ? [] : this.#options.readLastLines(instance);
  }

  #finish(end: 'live' | 'aborted' | 'failed', failure?: RolloutFacts['failure']): void {
    this.#end = end;
    this.#failure = failure;
    this.#app.changes.notify();
  }

  /** An order that fails is a fact of the rollout: nobody waits for the order itself. */
  async #carryOut(over: AbortSignal, order: (canceled: AbortSignal) => Promise<void>): Promise<void> {
    try {
      await order(AbortSignal.any([over, this.#canceled.signal]));
    } catch (error) {
      if (over.aborted || error === this.#canceled.signal.reason) return;
      const { appId, deps } = this.#app;
      deps.log.error('a rollout cannot go on', { appId, release: this.spec.releaseVersion, error });
      const cause = error instanceof AppError ? error.message : 'The platform failed.';
      this.#finish('failed', { cause, output: [] });
    }
  }
}

/** The first of `weights` above `weight`; 100 where there is none. */
function weightAfter(weights: readonly number[], weight: number): number {
  return weights.find((candidate) => candidate > weight) ?? 100;
}

const none: TrafficFacts = { requests: 0, errors: 0, totalMilliseconds: 0, latencies: [] };

/** The traffic of an app whose release is replaced by `releaseVersion`, as the gateway has counted it. */
async function readTraffic(
  { deps, appId, live }: AppWorkload,
  releaseVersion: number,
): Promise<Pick<RolloutFacts, 'traffic' | 'secondsSinceRequest'>> {
  const counts = await deps.router.readTraffic(appId);
  const factsOf = (version: number | undefined): TrafficFacts => {
    const { requests, errors, totalMilliseconds, latencies, answersRoot } =
      counts.find((release) => release.releaseVersion === version) ?? none;
    return { requests, errors, totalMilliseconds, latencies, ...(answersRoot === undefined ? {} : { answersRoot }) };
  };
  const lastRequestAt = Math.max(...counts.map((release) => release.lastRequestAt ?? Number.NEGATIVE_INFINITY));
  return {
    traffic: { candidate: factsOf(releaseVersion), stable: factsOf(live?.releaseVersion) },
    secondsSinceRequest: Math.max(0, (deps.clock.now().getTime() - lastRequestAt) / 1000),
  };
}
