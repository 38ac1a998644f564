import type { AppId } from '#shared/ids.ts';
import type { AppLogEntry, AppLogQuery, AppLogs } from '#shared/platform/app-logs.ts';
import { pause } from '../cluster/pause.ts';
import type { LogEntry, LogQuery, LogStore } from './log-store.ts';

/** What logs need. */
export interface AppLogsOptions {
  store: LogStore;
  /** Names of instances ('web.1') by the names of their pods: those that run. */
  readInstanceNames(appId: AppId): Promise<ReadonlyMap<string, string>>;
  now?(): number;
}

/** As far back as Loki looks in one query (`max_query_length` is 721 h by default). */
const keptMilliseconds = 30 * 24 * 3600 * 1000;
/** Entries of one answer (`max_entries_limit_per_query` is 5000 by default). */
const pageEntries = 5000;
const followMilliseconds = 1000;
/** What agents bring later than this is not seen by a follower. */
const lateMilliseconds = 10_000;

const nanoseconds = (milliseconds: number): bigint => BigInt(Math.floor(milliseconds)) * 1_000_000n;

const timeOf = (position: string): bigint => BigInt(position.split('.')[0] ?? 0);

/**
 * Logs of apps, as the store keeps them. For Loki, the agent on the nodes labels the lines of a pod with `app_id`, `process`, `release`, `pod` and `stream`
 * (docs/kubernetes.md); the platform pushes its own lines. An instance whose pod is gone has the end of the pod's name for its number.
 */
export function createAppLogs({ store, readInstanceNames, now = Date.now }: AppLogsOptions): AppLogs {
  /** Undefined when nothing can match: an instance that does not run. */
  async function select(
    appId: AppId,
    { process, releaseVersion }: AppLogQuery,
  ): Promise<Pick<LogQuery, 'labels' | 'pods'> | undefined> {
    const labels: Record<string, string> = { app_id: appId };
    if (releaseVersion !== undefined) labels['release'] = String(releaseVersion);
    if (process?.includes('.') === true) {
      // During a rollout there is one of each release.
      const pods = [...(await readInstanceNames(appId))].flatMap(([pod, name]) => (name === process ? pod : []));
      return pods.length === 0 ? undefined : { labels, pods };
    }
    return { labels: process === undefined ? labels : { ...labels, process } };
  }

  async function readNewest(appId: AppId, query: AppLogQuery): Promise<AppLogEntry[]> {
    const selection = query.lines === 0 ? undefined : await select(appId, query);
    if (selection === undefined) return [];
    const from = nanoseconds(Math.max(query.since?.getTime() ?? 0, now() - keptMilliseconds));
    const limit = Math.min(query.lines, pageEntries);
    const entries = await store.query({ ...selection, from, to: nanoseconds(now() + 60_000), limit, direction: 'backward' });
    return describe(appId, entries);
  }

  async function readFrom(appId: AppId, query: AppLogQuery, from: bigint): Promise<AppLogEntry[]> {
    const selection = await select(appId, query);
    if (selection === undefined) return [];
    const to = nanoseconds(now() + 60_000);
    return describe(appId, await store.query({ ...selection, from, to, limit: pageEntries, direction: 'forward' }));
  }

  async function describe(appId: AppId, entries: readonly LogEntry[]): Promise<AppLogEntry[]> {
    const names = entries.length === 0 ? new Map<string, string>() : await readInstanceNames(appId);
    let [rank, last] = [0, -1n];
    return entries.map(({ time, labels, line }) => {
      rank = time === last ? rank + 1 : 0;
      last = time;
      const { process = '', pod = '', release, stream } = labels;
      const isPlatform = process === 'paas';
      return {
        ts: new Date(Number(time / 1_000_000n)),
        process: isPlatform ? 'paas' : (names.get(pod) ?? `${process}.${pod.split('-').at(-1)}`),
        stream: isPlatform ? 'platform' : stream === 'stderr' ? 'stderr' : 'stdout',
        releaseVersion: Number(release ?? 0),
        message: line,
        position: `${time}.${rank}`,
      };
    });
  }

  return {
    readLogs: readNewest,

    async *followLogs(appId, query, signal, after) {
      /** Positions of a time that may still get entries. */
      const seen = new Set<string>();
      let from: bigint;
      const resumed = /^(\d{19})\.(\d{1,6})$/.exec(after ?? '');
      if (resumed === null) {
        from = nanoseconds(now() - lateMilliseconds);
        // What is there already is shown as far as it is asked for, and not once more as if it were new.
        for (const { position } of await readFrom(appId, query, from)) seen.add(position);
        for (const entry of await readNewest(appId, query)) {
          if (signal.aborted) return;
          seen.add(entry.position);
          yield entry;
        }
      } else {
        from = BigInt(resumed[1] ?? 0);
        for (let rank = 0; rank <= Number(resumed[2]); rank += 1) seen.add(`${from}.${rank}`);
      }
      const since = query.since === undefined ? 0n : nanoseconds(query.since.getTime());
      while (!signal.aborted) {
        const entries = await readFrom(appId, query, from);
        for (const entry of entries) {
          if (signal.aborted) return;
          if (seen.has(entry.position) || timeOf(entry.position) < since) continue;
          seen.add(entry.position);
          yield entry;
        }
        if (entries.length === pageEntries) {
          from = timeOf(entries.at(-1)?.position ?? '');
          continue;
        }
        // Lines that agents bring late are before those that are known already.
        const settled = nanoseconds(now() - lateMilliseconds);
        if (settled > from) from = settled;
        for (const position of seen) if (timeOf(position) < from) seen.delete(position);
        await pause(followMilliseconds, signal);
      }
    },

    async appendPlatformLog(appId, message) {
      const labels = { app_id: appId, process: 'paas', release: '0', pod: 'paas', stream: 'platform' };
      await store.push([{ time: nanoseconds(now()), labels, line: message }]);
    },

    // Loki hides the lines minutes later, and deletes them after its `delete_request_cancel_period`. Ids of apps are not used again.
    async deleteLogs(appId) {
      if ((await readNewest(appId, { lines: 1 })).length === 0) return false;
      await store.delete({ app_id: appId });
      return true;
    },
  };
}
