import { AppError } from '#shared/errors.ts';
import { decideStep, nextWeight, type TrafficCounts } from '#shared/platform/rollout-decision.ts';
import type { ProcessSpec, RolloutFacts, RolloutPlan, WorkloadSpec } from '#shared/platform/workloads.ts';
import type { AppWorkload, BootFailure } from './app-workload.ts';
import type { SupervisedInstance } from './supervised-instance.ts';

export interface RolloutGround {
  /** Newest lines an instance wrote. */
  readLastLines(instance: SupervisedInstance): Promise<readonly string[]>;
  stepPollMilliseconds: number;
}

/** The user's or the platform's reason to give up a rollout; its message is told. */
class RolloutAborted extends Error {
  readonly instance: SupervisedInstance | undefined;
  constructor(detail: string, instance?: SupervisedInstance) {
    super(detail);
    this.instance = instance;
  }
}

/**
 * Brings `spec` live on `app`, beside what is live there. Where an earlier call was cut off it goes on from what runs and
 * what the gateway follows; so every move here is one that may have been made already.
 * @param canceled aborts the rollout: all traffic returns to the old release
 * @param left ends the work without touching what runs; the iteration then rejects
 */
export async function* rollOut(
  app: AppWorkload,
  spec: WorkloadSpec,
  plan: RolloutPlan,
  ground: RolloutGround,
  canceled: AbortSignal,
  left: AbortSignal,
): AsyncGenerator<RolloutFacts, void, undefined> {
  const version = spec.releaseVersion;
  const over = AbortSignal.any([canceled, left]);
  if (app.candidate !== undefined && app.candidate.releaseVersion !== version) await discardCandidate(app);
  await app.setReleases({ live: app.live, candidate: spec });
  const weightNow = (): number => app.weights.get(version) ?? 0;
  yield { phase: 'starting', weight: weightNow() };
  try {
    const begun = await createTrafficGauge(app, version);
    await startWeb(app, spec, over);
    let weight = weightNow();
    if (weight > 0 && weight < 100) yield* judgeStep(app, version, weight, plan, ground, begun, over);
    while (weight < 100) {
      weight =
        app.live === undefined || spec.processes.every(({ type }) => type !== 'web') ? 100 : nextWeight(plan.weights, weight);
      await moveTraffic(app, version, weight);
      yield { phase: 'progressing', weight };
      if (weight === 100) break;
      yield* judgeStep(app, version, weight, plan, ground, begun, over);
    }
    await switchOtherTypes(app, spec, over);
  } catch (error) {
    if (left.aborted)
      throw new AppError('internal', 'The platform stops; the rollout goes on when it is back.', { cause: error });
    if (!(error instanceof RolloutAborted) && !canceled.aborted) throw error;
    const instance = error instanceof RolloutAborted ? error.instance : undefined;
    const detail = error instanceof RolloutAborted ? error.message : 'canceled';
    const output = instance === undefined ? [] : await ground.readLastLines(instance);
    await discardCandidate(app);
    await app.ground.output.say(`Release v${version} was given up: ${detail}`, version);
    yield { phase: 'aborted', weight: 0, detail, ...(output.length === 0 ? {} : { output }) };
    return;
  }
  await promote(app, spec);
  await app.ground.output.say(`Release v${version} is live`, version);
  yield { phase: 'live', weight: 100 };
}

/** All traffic back to the live release, its other process types too; the new one goes. */
export async function discardCandidate(app: AppWorkload): Promise<void> {
  const { live, candidate } = app;
  if (candidate === undefined) return;
  await app.setWeights(live === undefined ? [] : [[live.releaseVersion, 100]]);
  const fresh = [...app.instances].filter(({ record }) => record.releaseVersion === candidate.releaseVersion);
  await app.retire(...fresh).gone;
  await app.setReleases({ live });
  // They were stopped if it came as far as the switch.
  for (const process of otherTypes(live)) if (live !== undefined) app.startMissing(live, process);
}

/** `spec` is what runs from now on; everything else drains and goes. */
export async function promote(app: AppWorkload, spec: WorkloadSpec): Promise<void> {
  await app.setReleases({ live: spec });
  await app.setWeights([[spec.releaseVersion, 100]]);
  const old = [...app.instances].filter(({ record }) => record.releaseVersion !== spec.releaseVersion);
  await app.retire(...old).outOfTraffic;
}

/** What has no port to move traffic on: the old stops before the new starts, since two of them may do the same work twice. */
export async function switchOtherTypes(app: AppWorkload, spec: WorkloadSpec, over: AbortSignal): Promise<void> {
  const old = [...app.instances].filter(({ record }) => record.releaseVersion !== spec.releaseVersion && record.type !== 'web');
  await app.stop(...old);
  const fresh = otherTypes(spec).flatMap((process) => {
    app.startMissing(spec, process);
    return app.listOf(spec.releaseVersion, process.type);
  });
  throwOn(await app.waitUntilUp(fresh, over));
}

function otherTypes(spec: WorkloadSpec | undefined): ProcessSpec[] {
  return spec?.processes.filter(({ type }) => type !== 'web') ?? [];
}

async function startWeb(app: AppWorkload, spec: WorkloadSpec, over: AbortSignal): Promise<void> {
  const web = spec.processes.find(({ type }) => type === 'web');
  if (web === undefined) return;
  app.startMissing(spec, web);
  throwOn(await app.waitUntilUp(app.listOf(spec.releaseVersion, 'web'), over));
}

function throwOn(failure: BootFailure | undefined): void {
  if (failure !== undefined) throw new RolloutAborted(`${failure.instance.name} ${failure.cause}`, failure.instance);
}

async function moveTraffic(app: AppWorkload, version: number, weight: number): Promise<void> {
  const live = app.live?.releaseVersion;
  await app.setWeights(
    weight === 100 || live === undefined
      ? [[version, 100]]
      : [
          [live, 100 - weight],
          [version, weight],
        ],
  );
}

/** Returns when the step is passed, having told by what it was judged; throws RolloutAborted when it is not. */
async function* judgeStep(
  app: AppWorkload,
  version: number,
  weight: number,
  plan: RolloutPlan,
  ground: RolloutGround,
  gauge: TrafficGauge,
  over: AbortSignal,
): AsyncGenerator<RolloutFacts, void, undefined> {
  const { clock } = app.ground;
  const since = clock.now().getTime();
  const atStart = await gauge.read();
  for (;;) {
    over.throwIfAborted();
    const { fresh, old, secondsSinceRequest } = await gauge.read();
    const crashed = app.listOf(version).find(({ record }) => record.state === 'crashed');
    const decision = decideStep(
      {
        weight,
        secondsOnStep: (clock.now().getTime() - since) / 1000,
        secondsSinceRequest,
        fresh: { requests: fresh.requests - atStart.fresh.requests, errors: fresh.errors - atStart.fresh.errors },
        old,
        crash: crashed === undefined ? undefined : `${crashed.name} ${crashed.lastCause} at ${weight}%`,
      },
      plan,
    );
    if (decision.action === 'abort') throw new RolloutAborted(decision.detail, crashed ?? app.listOf(version, 'web')[0]);
    if (decision.action === 'raise') {
      yield { phase: 'progressing', weight, ...(decision.detail === undefined ? {} : { detail: decision.detail }) };
      return;
    }
    await clock.sleep(ground.stepPollMilliseconds, over);
  }
}

interface TrafficGauge {
  read(): Promise<{ fresh: TrafficCounts; old: TrafficCounts; secondsSinceRequest: number }>;
}

/** Follows the app's traffic from now on. */
async function createTrafficGauge(app: AppWorkload, version: number): Promise<TrafficGauge> {
  const { router, clock } = app.ground;
  const none: TrafficCounts = { requests: 0, errors: 0 };
  const readAll = async () => {
    const counts = await router.readTraffic(app.appId);
    const fresh = counts.find(({ releaseVersion }) => releaseVersion === version) ?? none;
    const old = counts.find(({ releaseVersion }) => releaseVersion === app.live?.releaseVersion) ?? none;
    return { fresh, old, total: fresh.requests + old.requests };
  };
  let { total } = await readAll();
  let lastRequestAt = Number.NEGATIVE_INFINITY;
  return {
    async read() {
      const now = clock.now().getTime();
      const counts = await readAll();
      if (counts.total !== total) lastRequestAt = now;
      total = counts.total;
      return { fresh: counts.fresh, old: counts.old, secondsSinceRequest: (now - lastRequestAt) / 1000 };
    },
  };
}
