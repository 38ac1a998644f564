import type { AppId } from '#shared/ids.ts';
import type { RolloutFacts, Rollouts } from '#shared/platform/rollouts.ts';
import type { TrafficFacts } from '#shared/platform/traffic.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import { type FakeApps, type FakeAppWorkload, openFakeApp } from './app-workload.ts';

/** Rollouts that a test can let crash and fail. */
export interface FakeRollouts extends Rollouts {
  /** An instance of the release that is being rolled out runs no more, for the reason given. */
  crash(appId: AppId, cause: string): void;
  /** The platform cannot carry on with the app's rollout. */
  fail(appId: AppId, cause: string): void;
  /** What a release answers the platform: 200 until this was called. @param crash why it ends by the question */
  answer(appId: AppId, releaseVersion: number, status: number | string, crash?: string): void;
  /** The instance that had crashed is up again. */
  recover(appId: AppId): void;
  /** Versions of the releases that were asked, in order. */
  readonly questions: readonly number[];
}

interface FakeRollout {
  readonly app: FakeAppWorkload;
  readonly spec: WorkloadSpec;
  readonly weights: readonly number[];
  phase: RolloutFacts['phase'];
  /** Promoted or aborted, but not to the end yet. */
  isEnding: boolean;
  crash: string | undefined;
  failure: RolloutFacts['failure'];
  output: readonly string[];
}

const pollMilliseconds = 5;
const takenOver = 'Another release took its place.';
const noTraffic: TrafficFacts = { requests: 0, errors: 0, totalMilliseconds: 0, latencies: [] };

/** Rollouts between releases that do not run, of traffic that a test makes. */
export function createFakeRollouts(fake: FakeApps): FakeRollouts {
  const rollouts = new Map<AppId, FakeRollout>();
  const answers = new Map<string, { status: number | string; crash?: string }>();
  const questions: number[] = [];

  const isUnderWay = ({ phase }: Pick<FakeRollout, 'phase'>): boolean => phase === 'starting' || phase === 'serving';
  const isThere = ({ app, spec }: FakeRollout): boolean =>
    [app.live, app.candidate].some((release) => release?.releaseVersion === spec.releaseVersion);
  const weightOf = ({ app, spec }: FakeRollout): number => app.weights.get(spec.releaseVersion) ?? 0;
  const findRollout = (appId: AppId, releaseId: string): FakeRollout | undefined => {
    const rollout = rollouts.get(appId);
    return rollout?.spec.releaseId === releaseId ? rollout : undefined;
  };

  async function begin(rollout: FakeRollout): Promise<void> {
    const { app, spec, weights } = rollout;
    if (fake.apps.get(spec.appId) !== app) return abort(rollout, 'The app was deleted.');
    if (app.live?.releaseVersion === spec.releaseVersion) {
      rollout.phase = 'live';
      return;
    }
    if (app.candidate?.releaseVersion !== spec.releaseVersion) await app.discardCandidate();
    app.candidate = spec;
    const failure = app.startMissing(spec);
    rollout.crash = failure?.cause;
    rollout.output = failure?.output ?? [];
    if (failure !== undefined) return;
    const hasWeb = spec.processes.some(({ type }) => type === 'web');
    if (weightOf(rollout) === 0) await moveTraffic(rollout, app.live === undefined || !hasWeb ? 100 : weightAfter(weights, 0));
    rollout.phase = 'serving';
  }

  async function moveTraffic({ app, spec }: FakeRollout, weight: number): Promise<void> {
    const live = app.live?.releaseVersion;
    // The old release stays in the route until the new one is live, and with it what it has answered.
    const ofLive = live === undefined ? [] : [[live, 100 - weight] as const];
    await app.applyRoute(spec, [...ofLive, [spec.releaseVersion, live === undefined ? 100 : weight]]);
  }

  async function abort(rollout: FakeRollout, reason: string): Promise<void> {
    if (rollout.phase === 'live' || rollout.phase === 'aborted' || rollout.isEnding) return;
    rollout.isEnding = true;
    const { app, spec, output } = rollout;
    if (app.candidate?.releaseVersion === spec.releaseVersion) await app.discardCandidate();
    rollout.phase = 'aborted';
    rollout.failure = { cause: reason, output };
  }

  async function promote(rollout: FakeRollout): Promise<void> {
    if (rollout.phase !== 'serving' || rollout.crash !== undefined || rollout.isEnding) return;
    await moveTraffic(rollout, 100);
    inBackground(rollout, async () => {
      if (rollout.phase !== 'serving' || rollout.crash !== undefined || rollout.isEnding || !isThere(rollout)) return;
      rollout.isEnding = true;
      await rollout.app.makeLive(rollout.spec);
      rollout.phase = 'live';
    });
  }

  /** As on a real platform: that it is under way can be seen. */
  function inBackground(rollout: FakeRollout, work: () => Promise<void>): void {
    setTimeout(() => {
      work().catch((error: unknown) => {
        rollout.phase = 'failed';
        rollout.failure = { cause: String(error), output: [] };
      });
    });
  }

  async function readFacts(rollout: FakeRollout): Promise<RolloutFacts> {
    const { app, spec } = rollout;
    const counts = await fake.router.readTraffic(spec.appId);
    const factsOf = (version: number | undefined): TrafficFacts => {
      const found = counts.find((one) => one.releaseVersion === version) ?? noTraffic;
      const { requests, errors, totalMilliseconds, latencies, answersRoot } = found;
      return { requests, errors, totalMilliseconds, latencies, ...(answersRoot === undefined ? {} : { answersRoot }) };
    };
    const traffic = { candidate: factsOf(spec.releaseVersion), stable: factsOf(app.live?.releaseVersion) };
    const lastRequestAt = Math.max(...counts.map((release) => release.lastRequestAt ?? Number.NEGATIVE_INFINITY));
    if (rollout.phase === 'serving' && !isThere(rollout)) await abort(rollout, takenOver);
    return {
      releaseId: spec.releaseId,
      releaseVersion: spec.releaseVersion,
      phase: rollout.phase,
      weight: rollout.phase === 'live' ? 100 : rollout.phase === 'aborted' ? 0 : weightOf(rollout),
      traffic,
      secondsSinceRequest: (Date.now() - lastRequestAt) / 1000,
      crash: rollout.crash,
      failure: rollout.failure,
    };
  }

  return {
    async startRollout(spec, weights) {
      const before = rollouts.get(spec.appId);
      if (before !== undefined && isUnderWay(before)) {
        if (before.spec.releaseId === spec.releaseId) return;
        await abort(before, takenOver);
      }
      const app = openFakeApp(fake, spec.appId);
      const rollout: FakeRollout = {
        app,
        spec,
        weights,
        phase: 'starting',
        isEnding: false,
        crash: undefined,
        failure: undefined,
        output: [],
      };
      rollouts.set(spec.appId, rollout);
      inBackground(rollout, () => begin(rollout));
    },

    async *watchRollout(appId, signal) {
      const rollout = rollouts.get(appId);
      while (rollout !== undefined && !signal.aborted) {
        const facts = await readFacts(rollout);
        yield facts;
        if (!isUnderWay(facts)) return;
        await new Promise((resolve) => setTimeout(resolve, pollMilliseconds));
      }
    },

    async advanceRollout(appId, releaseId, fromWeight) {
      const rollout = findRollout(appId, releaseId);
      if (rollout?.phase !== 'serving' || weightOf(rollout) !== fromWeight) return;
      await moveTraffic(rollout, weightAfter(rollout.weights, fromWeight));
    },

    async promoteRollout(appId, releaseId) {
      const rollout = findRollout(appId, releaseId);
      if (rollout !== undefined) await promote(rollout);
    },

    async abortRollout(appId, releaseId, reason) {
      const rollout = findRollout(appId, releaseId);
      if (rollout !== undefined) await abort(rollout, reason);
    },

    async askRelease(appId, releaseId, whom) {
      const rollout = findRollout(appId, releaseId);
      const spec = whom === 'candidate' ? rollout?.spec : rollout?.app.live;
      if (rollout === undefined || !spec?.processes.some(({ type }) => type === 'web')) return undefined;
      const found = answers.get(`${appId} ${spec.releaseVersion}`) ?? { status: 200 };
      questions.push(spec.releaseVersion);
      if (found.crash !== undefined) rollout.crash = found.crash;
      const { healthPath } = rollout.spec;
      return { path: healthPath ?? '/', isOwnPath: healthPath !== undefined, answers: [found.status] };
    },

    questions,

    answer(appId, releaseVersion, status, crash) {
      answers.set(`${appId} ${releaseVersion}`, { status, ...(crash === undefined ? {} : { crash }) });
    },

    recover(appId) {
      const rollout = rollouts.get(appId);
      if (rollout !== undefined) rollout.crash = undefined;
    },

    crash(appId, cause) {
      const rollout = rollouts.get(appId);
      if (rollout !== undefined) rollout.crash = cause;
    },

    fail(appId, cause) {
      const rollout = rollouts.get(appId);
      if (rollout === undefined) return;
      rollout.phase = 'failed';
      rollout.failure = { cause, output: [] };
    },
  };
}

function weightAfter(weights: readonly number[], weight: number): number {
  return weights.find((candidate) => candidate > weight) ?? 100;
}
