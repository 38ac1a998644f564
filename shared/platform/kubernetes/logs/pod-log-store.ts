import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { appLabels, processLabels } from '../names.ts';
import type { LogEntry, LogQuery, LogStore } from './log-store.ts';
import { PlatformLines } from './platform-lines.ts';

/** Of every pod of an app. */
const container = 'process';

/**
 * The logs that the kubelets keep of the pods that there are, for clusters without Loki: of each container what it prints and what the
 * one before it printed that crashed, 10 MiB at most (`containerLogMaxSize`). They go with their pods. Kubelets do not say which
 * of the two streams a line is of.
 */
export function createPodLogStore(cluster: Cluster): LogStore {
  const platformLines = new PlatformLines(cluster);

  async function readPods(query: LogQuery): Promise<ClusterObject[]> {
    const { app_id: appId = '', process, release } = query.labels;
    const labels = {
      ...appLabels(appId as AppId),
      ...processLabels,
      ...(process === undefined ? {} : { 'process-type': process }),
      ...(release === undefined ? {} : { 'release-version': release }),
    };
    const pods = await cluster.list({ kind: kinds.pod, labels });
    return pods.filter(({ metadata: { name } }) => query.pods === undefined || query.pods.includes(name));
  }

  async function readPlatformLines({ labels, pods, from, to }: LogQuery): Promise<LogEntry[]> {
    const { app_id: appId = '', process = 'paas', release = '0' } = labels;
    if (process !== 'paas' || release !== '0' || pods !== undefined) return [];
    const own = { process: 'paas', release: '0', pod: 'paas', stream: 'platform' };
    const lines = await platformLines.read(appId as AppId);
    return lines.filter(({ time }) => time >= from && time < to).map(({ time, line }) => ({ time, labels: own, line }));
  }

  return {
    async query(query) {
      const choose = (entries: readonly LogEntry[]): LogEntry[] => {
        // Lines of a pod with the same time stay in their order.
        const sorted = entries.toSorted((a, b) => (a.time === b.time ? comparePods(a, b) : a.time < b.time ? -1 : 1));
        return query.direction === 'forward' ? sorted.slice(0, query.limit) : sorted.slice(-query.limit);
      };
      let chosen = choose(await readPlatformLines(query));
      let failure: AppError | undefined;
      let hasAnswer = false;
      // One after the other, so that no more than the answer and one log are in memory.
      for (const pod of query.labels['process'] === 'paas' ? [] : await readPods(query)) {
        try {
          chosen = choose([...chosen, ...(await readPod(cluster, pod, query))]);
          hasAnswer = true;
        } catch (error) {
          // The node of a pod may be gone: the others still show what their pods print.
          if (!(error instanceof AppError)) throw error;
          failure = error;
        }
      }
      if (failure !== undefined && !hasAnswer) throw failure;
      return chosen;
    },
    async push(entries) {
      const appId = entries[0]?.labels['app_id'];
      if (appId !== undefined) await platformLines.append(appId as AppId, entries);
    },
    async delete({ app_id: appId }) {
      if (appId !== undefined) await platformLines.delete(appId as AppId);
    },
  };
}

async function readPod(cluster: Cluster, { metadata, status }: ClusterObject, query: LogQuery): Promise<LogEntry[]> {
  const { name, namespace = '', labels: podLabels } = metadata;
  const { containerStatuses = [] } = (status ?? {}) as { containerStatuses?: readonly { restartCount?: number }[] };
  const labels = {
    process: podLabels?.['process-type'] ?? '',
    release: podLabels?.['release-version'] ?? '',
    pod: name,
    stream: 'stdout',
  };
  const { from, to, limit, direction } = query;
  const newest = direction === 'backward' ? { newest: limit } : {};
  const entries: LogEntry[] = [];
  // What crashed first.
  for (const previous of (containerStatuses[0]?.restartCount ?? 0) > 0 ? [true, false] : [false]) {
    const lines = cluster.readTimedLog({ namespace, name, container }, { since: from, previous, ...newest });
    for await (const { time, line } of lines) {
      if (time >= from && time < to) entries.push({ time, labels, line });
      if (direction === 'forward' && entries.length >= limit) return entries;
    }
  }
  return entries;
}

const comparePods = (a: LogEntry, b: LogEntry): number => (a.labels['pod'] ?? '').localeCompare(b.labels['pod'] ?? '');
