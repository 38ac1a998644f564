import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import type { Drift, DriftTarget } from '#shared/platform/drift.ts';
import type { Cluster, ClusterEvent, Selection } from '../cluster/cluster.ts';
import { type Kind, kinds } from '../cluster/kinds.ts';
import { pause } from '../cluster/pause.ts';
import { managedLabels } from '../names.ts';
import { DriftIndex } from './drift-index.ts';
import { DriftReports, describeTarget, settleMilliseconds } from './drift-reports.ts';
import { createObservedCluster } from './observed-cluster.ts';

/** The kinds whose objects are put back. Pods, Jobs, builds and their caches are not: they have an end, or are made anew by their user. */
export const watchedKinds: readonly Kind[] = [
  kinds.namespace,
  kinds.roleBinding,
  kinds.resourceQuota,
  kinds.limitRange,
  kinds.networkPolicy,
  kinds.service,
  kinds.secret,
  kinds.configMap,
  kinds.deployment,
  kinds.rollout,
  kinds.httpRoute,
  kinds.certificate,
  kinds.listenerSet,
  kinds.postgresCluster,
];

/** Kinds that a cluster may do without: their operator is looked for from time to time. */
const optionalKinds = new Set<Kind>([kinds.postgresCluster]);
const operatorLookMilliseconds = 600_000;
/** A refusal that lasts longer than so is no matter of a moment. */
const patientMilliseconds = 8000;
const retryMilliseconds = { first: 1000, last: 60_000 };

/** Dependencies of {@link createKubernetesDrift}. */
export interface KubernetesDriftOptions {
  cluster: Cluster;
  clock: Pick<Clock, 'now'>;
  log: Pick<Log, 'info' | 'warn'>;
}

/** Drift, and the cluster that all other ports must use: what they write through it is not reported. */
export function createKubernetesDrift({ cluster, clock, log }: KubernetesDriftOptions): { cluster: Cluster; drift: Drift } {
  const index = new DriftIndex();
  const reports = new DriftReports(clock);
  const synced = Promise.withResolvers<void>();

  async function follow({ kind, namespace }: Pick<Selection, 'kind' | 'namespace'>, following: Following): Promise<void> {
    const { signal, settle, listed, seen } = following;
    let milliseconds = retryMilliseconds.first;
    while (!signal.aborted) {
      try {
        if (optionalKinds.has(kind) && !(await cluster.serves(kind))) {
          listed();
          await pause(operatorLookMilliseconds, signal);
          continue;
        }
        const noted = (): void => {
          milliseconds = retryMilliseconds.first;
          listed();
        };
        const selection = { kind, labels: managedLabels, ...(namespace === undefined ? {} : { namespace }) };
        for await (const event of cluster.watch(selection, signal, noted)) {
          seen?.(event);
          const key = index.observe(event);
          if (key !== undefined) void settle(key);
        }
      } catch (error) {
        if (signal.aborted) return;
        // The right to a new namespace comes a moment after it.
        if (namespace === undefined || milliseconds > patientMilliseconds)
          log.warn(`Objects of the kind ${kind.kind} cannot be watched; what others change of them is not put back.`, { error });
        await pause(milliseconds, signal);
        milliseconds = Math.min(milliseconds * 2, retryMilliseconds.last);
      }
    }
  }

  /** The platform has a right to Secrets in the tenants' namespaces only, so they are watched in each of them. */
  function followSecrets({ signal, settle }: Pick<Following, 'signal' | 'settle'>): (event: ClusterEvent) => void {
    const watches = new Map<string, AbortController>();
    return ({ type, object }) => {
      const namespace = object.metadata.name;
      if (type === 'DELETED') {
        watches.get(namespace)?.abort();
        watches.delete(namespace);
        return;
      }
      if (watches.has(namespace)) return;
      const ending = new AbortController();
      watches.set(namespace, ending);
      const following = { signal: AbortSignal.any([signal, ending.signal]), settle, listed: () => undefined };
      void follow({ kind: kinds.secret, namespace }, following);
    };
  }

  /** One kind after the other, so that the lists of all kinds are never in memory together. */
  async function followAll({ signal, settle }: Pick<Following, 'signal' | 'settle'>): Promise<void> {
    const { promise: aborted, resolve: abort } = Promise.withResolvers<void>();
    signal.addEventListener('abort', () => abort());
    const seesNamespace = followSecrets({ signal, settle });
    for (const kind of watchedKinds) {
      if (kind === kinds.secret) continue;
      const listed = Promise.withResolvers<void>();
      const seen = kind === kinds.namespace ? { seen: seesNamespace } : {};
      void follow({ kind }, { signal, settle, listed: () => listed.resolve(), ...seen });
      await Promise.race([listed.promise, aborted]);
      if (signal.aborted) return;
    }
    synced.resolve();
  }

  const drift: Drift = {
    async *watchDrift(signal) {
      const queue: DriftTarget[] = [];
      let wake = (): void => undefined;
      const settle = async (key: string): Promise<void> => {
        await pause(settleMilliseconds, signal);
        const target = signal.aborted ? undefined : index.takeDrift(key);
        if (target === undefined) return;
        await pause(reports.schedule(key), signal);
        // One repair puts back everything of a target.
        if (queue.some((each) => describeTarget(each) === describeTarget(target))) return;
        queue.push(target);
        wake();
      };
      const stop = (): void => wake();
      signal.addEventListener('abort', stop);
      void followAll({ signal, settle });
      try {
        while (!signal.aborted) {
          const target = queue.shift();
          if (target === undefined) await new Promise<void>((resolve) => (wake = resolve));
          else yield target;
        }
      } finally {
        signal.removeEventListener('abort', stop);
      }
    },
    async listAppIds(signal) {
      const aborted = Promise.withResolvers<never>();
      const stop = (): void => aborted.reject(signal.reason as Error);
      signal.addEventListener('abort', stop);
      try {
        signal.throwIfAborted();
        await Promise.race([synced.promise, aborted.promise]);
      } finally {
        signal.removeEventListener('abort', stop);
      }
      return index.listAppIds();
    },
  };
  return { cluster: createObservedCluster(cluster, index, watchedKinds), drift };
}

interface Following {
  signal: AbortSignal;
  /** Reports the drift of a key, if there is any, in a moment. */
  settle(key: string): Promise<void>;
  /** All objects that there are have been observed. */
  listed(): void;
  /** Gets every event, too. */
  seen?(event: ClusterEvent): void;
}
