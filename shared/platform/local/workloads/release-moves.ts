/** The moves that rollouts, scaling and restarts are made of. One of them at a time runs on an app. */
import { AppError } from '#shared/errors.ts';
import type { ProcessSpec, WorkloadSpec } from '#shared/platform/workloads.ts';
import type { AppWorkload, BootFailure } from './app-workload.ts';
import type { SupervisedInstance } from './supervised-instance.ts';

/** Makes exactly `spec` run. Resolves too when it does not come up: it is then restarted, or the release before stays live. */
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
    await app.logLine(`Release v${spec.releaseVersion} did not start: ${failure.instance.name} ${failure.cause}`);
    return;
  }
  await app.giveAllTraffic(spec.releaseVersion);
  await retireSurplus(app, spec);
  // A worker that crashes is restarted like any other; this release is the live one even so.
  await switchOtherTypes(app, spec, over).catch(() => over.throwIfAborted());
  await makeLive(app, spec);
}

/** Replaces one instance after the other. A new web instance is up before the old one drains; of other types the old one stops first. */
export async function restartInstances(app: AppWorkload, over: AbortSignal): Promise<void> {
  const { live } = app;
  if (live === undefined) return;
  for (const old of app.listOf(live.releaseVersion)) {
    over.throwIfAborted();
    await replaceInstance(app, live, old, over);
  }
}

async function replaceInstance(app: AppWorkload, live: WorkloadSpec, old: SupervisedInstance, over: AbortSignal): Promise<void> {
  const { type, index } = old.record;
  if (type !== 'web') await app.stop(old);
  const fresh = app.start(live, type, index);
  const failure = await app.waitUntilUp([fresh], over);
  if (failure !== undefined && type === 'web') {
    await app.retire(fresh).gone;
    throw new AppError('conflict', `The restart was aborted: ${old.name} ${failure.cause}. The previous instance keeps serving.`);
  }
  if (type !== 'web') return;
  await app.syncRoute();
  await app.retire(old).outOfTraffic;
}

/** Ends instances beyond the wanted quantity, and of types that the release does not have. */
async function retireSurplus(app: AppWorkload, spec: WorkloadSpec): Promise<void> {
  const surplus = app.listOf(spec.releaseVersion).filter(({ record }) => {
    const wanted = spec.processes.find(({ type }) => type === record.type)?.quantity ?? 0;
    return record.index > wanted;
  });
  await app.retire(...surplus).outOfTraffic;
}

/** Starts the instances that get traffic. Resolves when they are up, or with the first that is not. */
export async function startWeb(app: AppWorkload, spec: WorkloadSpec, over: AbortSignal): Promise<BootFailure | undefined> {
  const web = spec.processes.find(({ type }) => type === 'web');
  if (web === undefined) return undefined;
  app.startMissing(spec, web);
  return app.waitUntilUp(app.listOf(spec.releaseVersion, 'web'), over);
}

/** Gives the release `weight` percent of the traffic and the live one the rest. */
export async function moveTraffic(app: AppWorkload, releaseVersion: number, weight: number): Promise<void> {
  const live = app.live?.releaseVersion;
  if (weight === 100 || live === undefined) return app.giveAllTraffic(releaseVersion);
  await app.setWeights([
    [live, 100 - weight],
    [releaseVersion, weight],
  ]);
}

/**
 * Replaces the processes that have no port to move traffic on: the old ones stop before the new ones start, since two of
 * them may do the same work twice. Resolves when they are up, or with the first that is not.
 */
export async function switchOtherTypes(
  app: AppWorkload,
  spec: WorkloadSpec,
  over: AbortSignal,
): Promise<BootFailure | undefined> {
  const old = [...app.instances].filter(({ record }) => record.releaseVersion !== spec.releaseVersion && record.type !== 'web');
  await app.stop(...old);
  const fresh = otherTypes(spec).flatMap((process) => {
    app.startMissing(spec, process);
    return app.listOf(spec.releaseVersion, process.type);
  });
  return app.waitUntilUp(fresh, over);
}

/** Makes `spec` the live release. Instances of others drain and end. */
export async function makeLive(app: AppWorkload, spec: WorkloadSpec): Promise<void> {
  await app.setReleases({ live: spec });
  await app.giveAllTraffic(spec.releaseVersion);
  const old = [...app.instances].filter(({ record }) => record.releaseVersion !== spec.releaseVersion);
  await app.retire(...old).outOfTraffic;
}

/** Gives the live release all traffic and its other process types back. The candidate's instances drain and end. */
export async function discardCandidate(app: AppWorkload): Promise<void> {
  const { live, candidate } = app;
  if (candidate === undefined) return;
  if (live === undefined) await app.setWeights([]);
  else await app.giveAllTraffic(live.releaseVersion);
  const fresh = [...app.instances].filter(({ record }) => record.releaseVersion === candidate.releaseVersion);
  await app.retire(...fresh).gone;
  await app.setReleases({ live });
  // They were stopped if the candidate had been promoted already.
  for (const process of otherTypes(live)) if (live !== undefined) app.startMissing(live, process);
}

function otherTypes(spec: WorkloadSpec | undefined): ProcessSpec[] {
  return spec?.processes.filter(({ type }) => type !== 'web') ?? [];
}
