/** What can be done to the live release besides a rollout. */
import { AppError } from '#shared/errors.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import type { AppWorkload } from './app-workload.ts';
import { discardCandidate, promote, switchOtherTypes } from './rollout.ts';
import type { SupervisedInstance } from './supervised-instance.ts';

/** Makes exactly `spec` run. Returns too when it is known not to come up: then it is tried on, or the release before stays. */
export async function ensureRelease(app: AppWorkload, spec: WorkloadSpec, over: AbortSignal): Promise<void> {
  if (app.candidate !== undefined && app.candidate.releaseVersion !== spec.releaseVersion) await discardCandidate(app);
  const before = app.live;
  const replaces = before !== undefined && before.releaseVersion !== spec.releaseVersion && app.instances.size > 0;
  await app.setReleases(replaces ? { live: before, candidate: spec } : { live: spec });
  const web = spec.processes.filter(({ type }) => type === 'web');
  const failure = await app.waitUntilUp(
    web.flatMap((process) => app.startMissing(spec, process)),
    over,
  );
  if (failure !== undefined && replaces) {
    await discardCandidate(app);
    await app.ground.output.say(`Release v${spec.releaseVersion} did not come up: ${failure.instance.name} ${failure.cause}`);
    return;
  }
  await app.setWeights([[spec.releaseVersion, 100]]);
  await retireSurplus(app, spec);
  // A worker that crashes is started again like any other; the release that serves is this one all the same.
  await switchOtherTypes(app, spec, over).catch(() => over.throwIfAborted());
  await promote(app, spec);
}

/** One after the other: the new one is up before the old one drains; what has no traffic stops first. */
export async function restartInstances(app: AppWorkload, over: AbortSignal): Promise<void> {
  const { live } = app;
  if (live === undefined) return;
  for (const old of app.listOf(live.releaseVersion)) {
    over.throwIfAborted();
    await replace(app, live, old, over);
  }
}

async function replace(app: AppWorkload, live: WorkloadSpec, old: SupervisedInstance, over: AbortSignal): Promise<void> {
  const { type, index } = old.record;
  if (type !== 'web') await app.stop(old);
  const fresh = app.start(live, type, index);
  const failure = await app.waitUntilUp([fresh], over);
  if (failure !== undefined && type === 'web') {
    await app.retire(fresh).gone;
    throw new AppError('conflict', `The restart was given up: ${old.name} ${failure.cause}. The instance before serves on.`);
  }
  if (type !== 'web') return;
  await app.syncRoute();
  await app.retire(old).outOfTraffic;
}

/** Instances beyond the wanted number, the highest first, and of types that are no more. */
async function retireSurplus(app: AppWorkload, spec: WorkloadSpec): Promise<void> {
  const surplus = app.listOf(spec.releaseVersion).filter(({ record }) => {
    const wanted = spec.processes.find(({ type }) => type === record.type)?.quantity ?? 0;
    return record.index > wanted;
  });
  await app.retire(...surplus).outOfTraffic;
}
