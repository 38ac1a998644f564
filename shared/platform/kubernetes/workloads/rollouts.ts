import { AppError } from '#shared/errors.ts';
import type { AppId, ReleaseId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import type { RolloutFacts, Rollouts } from '#shared/platform/rollouts.ts';
import { signalChanges } from '../cluster/change-signal.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { pollUntil } from '../cluster/pause.ts';
import { appLabels, appObjectName, canaryServiceName } from '../names.ts';
import { type AppState, type Candidate, ensureAppState, readAppState, type StoredState, writeAppState } from './app-state.ts';
import type { ReleaseObjects } from './apply-release.ts';
import { askRelease } from './ask-release.ts';
import { listInstances } from './instances.ts';
import { type AppObservation, currentStatus, isWebMissing, observeApp, type RolloutStatus } from './observe-app.ts';
import { candidateProgress, endedFacts, type RolloutTraffic } from './rollout-facts.ts';
import { processName, webType } from './workload-plan.ts';

/** What rollouts need. */
export interface RolloutOptions {
  cluster: Cluster;
  objects: ReleaseObjects;
  /** Requests to the two releases, counted by the gateway. */
  readTraffic(appId: AppId, versions: { candidate: number; stable: number | undefined }): Promise<RolloutTraffic>;
}

/** Rollouts, and what workloads ask of them. */
export interface KubernetesRollouts extends Rollouts {
  /** Aborts an unfinished rollout of a release other than this one, and waits until it is over. */
  abortOthers(appId: AppId, releaseId: ReleaseId, cause: string): Promise<void>;
}

const lookMilliseconds = 500;
const orderSeconds = 60;
const outputLines = 50;

/**
 * Rollouts by Argo Rollouts. Core decides when one goes on; the controller moves pods and weights. What is done after an order,
 * in several steps, is done by whoever watches: any process, and several at the same time do no harm.
 */
export function createKubernetesRollouts({ cluster, objects, readTraffic }: RolloutOptions): KubernetesRollouts {
  const rollouts: KubernetesRollouts = {
    async startRollout(spec, weights) {
      const { appId, releaseId, releaseVersion } = spec;
      await rollouts.abortOthers(appId, releaseId, 'Another release was started.');
      const stored = await ensureAppState(cluster, spec);
      const { live, candidate } = stored.state;
      if (candidate === undefined && live?.releaseId === releaseId) {
        await writeAppState(cluster, appId, stored, { ...stored.state, ended: { ...live, phase: 'live' } });
        return;
      }
      if (candidate?.order !== undefined) return;
      const hasWeb = spec.processes.some(({ type }) => type === webType);
      await objects.applySecrets(spec);
      if (candidate === undefined) {
        const { ended: _, ...state } = stored.state;
        const others = spec.processes.flatMap(({ type }) => (type === webType ? [] : processName(appId, type)));
        const traffic = hasWeb ? { weights } : {};
        const begun = { ...state, candidate: { releaseId, releaseVersion, others, ...traffic } };
        // Another process has started a rollout in this moment.
        if ((await writeAppState(cluster, appId, stored, begun)) === undefined) return await rollouts.startRollout(spec, weights);
      }
      // Also for a candidate that is known: whoever started it may have ended before this.
      await objects.applyWeb(spec, weights);
      // Without visitors there is nothing to move in steps.
      if (!hasWeb) await objects.applyOthers(spec);
    },

    async *watchRollout(appId, signal) {
      const leaving = new AbortController();
      const over = AbortSignal.any([signal, leaving.signal]);
      const changes = signalChanges(cluster, { kind: kinds.rollout, labels: appLabels(appId) }, over);
      let seen: Candidate | undefined;
      try {
        while (!signal.aborted) {
          const app = await observeApp(cluster, appId);
          const candidate = app?.state.candidate;
          if (app === undefined || candidate === undefined || (seen !== undefined && seen.releaseId !== candidate.releaseId)) {
            const facts = seen === undefined ? app?.state.ended : endOf(seen, app?.state);
            if (facts !== undefined) yield endedFacts(facts);
            return;
          }
          seen = candidate;
          const facts = await proceed(appId, app, candidate);
          yield facts;
          if (facts.phase === 'live' || facts.phase === 'aborted') return;
          await changes.next(lookMilliseconds);
        }
      } finally {
        leaving.abort();
      }
    },

    async advanceRollout(appId, releaseId, fromWeight) {
      let isOrdered = false;
      // The controller writes the Rollout too: what has changed since it was observed is observed again.
      await pollUntil(async () => {
        const app = await observeCandidate(appId, releaseId);
        const status = app === undefined ? undefined : currentStatus(app, appId);
        if (app === undefined || status?.canary?.weights?.canary.weight !== fromWeight || status.pauseConditions === undefined)
          return true;
        isOrdered = await endPause(appId, app);
        return isOrdered;
      }, orderSeconds);
      if (!isOrdered) return;
      await pollUntil(async () => {
        const now = await observeCandidate(appId, releaseId);
        return now === undefined || (currentStatus(now, appId)?.canary?.weights?.canary.weight ?? fromWeight) !== fromWeight;
      }, orderSeconds);
    },

    async promoteRollout(appId, releaseId) {
      await giveOrder(appId, releaseId, async () => ({ action: 'promote' }));
    },

    async abortRollout(appId, releaseId, cause) {
      await giveOrder(appId, releaseId, async (app, candidate) => ({
        action: 'abort',
        cause,
        output: await readOutput(app, candidate),
      }));
    },

    async askRelease(appId, releaseId, whom) {
      const app = await observeCandidate(appId, releaseId);
      const { candidate, live } = app?.state ?? {};
      if (app?.rollout === undefined || candidate === undefined || (whom === 'stable' && live === undefined)) return undefined;
      const spec = await objects.readRelease(appId, app.namespace, candidate.releaseVersion);
      // A first release has no other beside it: both Services lead to it.
      const service = whom === 'candidate' ? canaryServiceName(appId) : appObjectName(appId);
      return askRelease({
        whom,
        origin: `http://${service}.${app.namespace}.svc.cluster.local`,
        healthPath: spec?.healthPath,
        timeoutSeconds: spec?.healthTimeoutSeconds ?? limits.app.healthTimeoutSeconds.usual,
      });
    },

    async abortOthers(appId, releaseId, cause) {
      const other = (await readAppState(cluster, appId))?.state.candidate;
      if (other === undefined || other.releaseId === releaseId) return;
      await rollouts.abortRollout(appId, other.releaseId, cause);
      for await (const _ of rollouts.watchRollout(appId, AbortSignal.timeout(orderSeconds * 1000)));
      if ((await readAppState(cluster, appId))?.state.candidate?.releaseId === other.releaseId)
        throw new AppError('internal', `Release v${other.releaseVersion} is still being rolled back. Try again in a minute.`);
    },
  };
  return rollouts;

  async function observeCandidate(appId: AppId, releaseId: ReleaseId): Promise<AppObservation | undefined> {
    const app = await observeApp(cluster, appId);
    return app?.state.candidate?.releaseId === releaseId ? app : undefined;
  }

  /** False when the Rollout has changed since it was observed. */
  async function endPause(appId: AppId, { namespace, rollout }: AppObservation): Promise<boolean> {
    const reference = { kind: kinds.rollout, name: appObjectName(appId), namespace };
    const { resourceVersion } = rollout?.metadata ?? {};
    try {
      await cluster.patch(reference, { metadata: { resourceVersion }, status: { pauseConditions: null } }, 'status');
      return true;
    } catch (error) {
      if (error instanceof AppError && error.code === 'conflict') return false;
      throw error;
    }
  }

  /** The first order stands: one that comes later, or for another release, changes nothing. */
  async function giveOrder(
    appId: AppId,
    releaseId: ReleaseId,
    plan: (app: AppObservation, candidate: Candidate) => Promise<NonNullable<Candidate['order']>>,
  ): Promise<void> {
    for (;;) {
      const app = await observeCandidate(appId, releaseId);
      const candidate = app?.state.candidate;
      if (app === undefined || candidate === undefined || candidate.order !== undefined) return;
      const state = { ...app.state, candidate: { ...candidate, order: await plan(app, candidate) } };
      if ((await writeAppState(cluster, appId, app, state)) !== undefined) return;
    }
  }

  /** Does what is due, and reports. */
  async function proceed(appId: AppId, app: AppObservation, candidate: Candidate): Promise<RolloutFacts> {
    const { order } = candidate;
    if (order?.action === 'abort') return abort(appId, app, candidate, order);
    // Somebody has deleted what is rolled out, or what leads to it. A Rollout that is created anew knows no older release.
    if (candidate.weights !== undefined && isWebMissing(app, appId)) {
      const spec = await objects.readRelease(appId, app.namespace, candidate.releaseVersion);
      if (spec !== undefined) await objects.applyWeb(spec, candidate.weights);
    }
    const progress = candidateProgress(app, appId, candidate);
    const { live } = app.state;
    const versions = { candidate: candidate.releaseVersion, stable: live?.releaseVersion };
    const facts: RolloutFacts = {
      releaseId: candidate.releaseId,
      releaseVersion: candidate.releaseVersion,
      phase: progress.isUp ? 'serving' : 'starting',
      weight: progress.weight,
      ...(await readTraffic(appId, versions)),
      crash: progress.crash,
      failure: undefined,
    };
    if (order === undefined) return facts;
    if (!progress.isWebDone)
      await patchStatus(appId, app, (status) => (status?.phase === 'Healthy' ? undefined : { promoteFull: true }));
    else if (progress.isDone) return end(appId, app, candidate, { phase: 'live' });
    else {
      const spec = await objects.readRelease(appId, app.namespace, candidate.releaseVersion);
      if (spec !== undefined) await objects.applyOthers(spec);
      // Nothing but processes without traffic may be left, and those the release may not have.
      const now = await observeCandidate(appId, candidate.releaseId);
      if (now !== undefined && candidateProgress(now, appId, candidate).isDone)
        return end(appId, now, candidate, { phase: 'live' });
    }
    return facts;
  }

  /** Traffic goes back first, then the template of the release that serves. */
  async function abort(
    appId: AppId,
    app: AppObservation,
    candidate: Candidate,
    { cause, output }: Extract<Candidate['order'], { action: 'abort' }>,
  ): Promise<RolloutFacts> {
    const { live } = app.state;
    const last = live === undefined ? undefined : await objects.readRelease(appId, app.namespace, live.releaseVersion);
    const isRunning = app.pods.some(
      ({ metadata: { labels, deletionTimestamp } }) =>
        labels?.['release-version'] === String(candidate.releaseVersion) && deletionTimestamp === undefined,
    );
    if (last === undefined) await objects.deleteAll(appId, app.namespace);
    else {
      await patchStatus(appId, app, (status) =>
        status?.abort === true || status?.phase === 'Healthy' ? undefined : { abort: true },
      );
      await objects.applyWeb(last);
      await objects.applyOthers(last);
    }
    const now = await observeCandidate(appId, candidate.releaseId);
    const status = now === undefined ? undefined : currentStatus(now, appId);
    const isBack =
      last === undefined ||
      now?.rollout === undefined ||
      (isHealthy(status) && (status?.canary?.weights?.canary.weight ?? 0) === 0);
    if (now !== undefined && isBack && !isRunning) return end(appId, now, candidate, { phase: 'aborted', cause, output });
    return {
      releaseId: candidate.releaseId,
      releaseVersion: candidate.releaseVersion,
      phase: 'starting',
      weight: status?.canary?.weights?.canary.weight ?? 0,
      ...(await readTraffic(appId, { candidate: candidate.releaseVersion, stable: live?.releaseVersion })),
      crash: undefined,
      failure: undefined,
    };
  }

  async function end(
    appId: AppId,
    app: AppObservation,
    candidate: Candidate,
    result: { phase: 'live' } | { phase: 'aborted'; cause: string; output: readonly string[] },
  ): Promise<RolloutFacts> {
    const { releaseId, releaseVersion } = candidate;
    const { live } = app.state;
    const ended = { releaseId, releaseVersion, ...result };
    const facts = endedFacts(ended);
    const [stays, goes] = result.phase === 'live' ? [{ releaseId, releaseVersion }, live] : [live, { releaseId, releaseVersion }];
    const { candidate: _, ...state } = app.state;
    const written = await writeAppState(cluster, appId, app, {
      ...state,
      ...(stays === undefined ? {} : { live: stays }),
      ended,
    });
    // Somebody else who watches was faster: the next look finds the end.
    if (written === undefined) return { ...facts, phase: 'serving', failure: undefined };
    if (goes !== undefined && goes.releaseVersion !== stays?.releaseVersion)
      await objects.deleteSecrets(appId, app.namespace, goes.releaseVersion);
    return facts;
  }

  async function patchStatus(
    appId: AppId,
    app: StoredState & AppObservation,
    choose: (status: RolloutStatus | undefined) => object | undefined,
  ): Promise<void> {
    const status = currentStatus(app, appId);
    const change = status === undefined ? undefined : choose(status);
    const reference = { kind: kinds.rollout, name: appObjectName(appId), namespace: app.namespace };
    if (change !== undefined) await cluster.patch(reference, { status: change }, 'status');
  }

  /** What the crashed or else the first instance of the candidate has printed. */
  async function readOutput(app: AppObservation, candidate: Candidate): Promise<readonly string[]> {
    const instances = listInstances(app.pods).filter(({ releaseVersion }) => releaseVersion === candidate.releaseVersion);
    const instance = instances.find(({ crash }) => crash !== undefined) ?? instances[0];
    if (instance === undefined) return [];
    const pod = { namespace: app.namespace, name: instance.podName, container: 'process' };
    const text = await cluster.readPodLog(pod, outputLines).catch(() => undefined);
    return text === undefined ? [] : text.split('\n').filter((line) => line !== '');
  }
}

const isHealthy = (status: RolloutStatus | undefined): boolean => status?.phase === 'Healthy';

/** How a candidate has ended that is a candidate no more: as the state says, or with the app. */
function endOf({ releaseId, releaseVersion }: Candidate, state: AppState | undefined): NonNullable<AppState['ended']> {
  if (state?.ended?.releaseId === releaseId) return state.ended;
  if (state?.live?.releaseId === releaseId) return { releaseId, releaseVersion, phase: 'live' };
  return { releaseId, releaseVersion, phase: 'aborted', cause: 'The app or its release was replaced.' };
}
