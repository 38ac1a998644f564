import type { Clock } from '#shared/clock.ts';
import type { AppId } from '#shared/ids.ts';
import type { AppLogEntry, AppLogQuery, AppLogs } from '#shared/platform/app-logs.ts';

/** App logs that a test writes. */
export interface FakeAppLogs extends AppLogs {
  /** An app's process prints a line. */
  write(appId: AppId, line: { process: string; releaseVersion: number; message: string; stream?: 'stdout' | 'stderr' }): void;
}

interface AppLog {
  readonly entries: AppLogEntry[];
  wake: PromiseWithResolvers<void>;
}

/** App logs in memory. */
export function createFakeAppLogs(clock: Clock): FakeAppLogs {
  const logs = new Map<AppId, AppLog>();

  function logOf(appId: AppId): AppLog {
    const log = logs.get(appId) ?? { entries: [], wake: Promise.withResolvers<void>() };
    logs.set(appId, log);
    return log;
  }

  function append(appId: AppId, entry: Omit<AppLogEntry, 'position'>): void {
    const log = logOf(appId);
    log.entries.push({ ...entry, position: String(log.entries.length + 1) });
    log.wake.resolve();
    log.wake = Promise.withResolvers();
  }

  return {
    write(appId, { stream = 'stdout', ...line }) {
      append(appId, { ts: clock.now(), stream, ...line });
    },
    async readLogs(appId, query) {
      return newest(logs.get(appId)?.entries ?? [], query);
    },
    async *followLogs(appId, query, signal, after) {
      const log = logOf(appId);
      const over = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      const resumed = /^\d{1,9}$/.test(after ?? '');
      let at = resumed ? Math.min(Number(after), log.entries.length) : log.entries.length;
      if (!resumed) yield* newest(log.entries, query);
      while (!signal.aborted && logs.get(appId) === log) {
        for (; at < log.entries.length && !signal.aborted; at += 1) {
          const entry = log.entries[at];
          if (entry !== undefined && matches(entry, query)) yield entry;
        }
        if (at === log.entries.length) await Promise.race([log.wake.promise, over]);
      }
    },
    async appendPlatformLog(appId, message) {
      const releaseVersion = logOf(appId).entries.at(-1)?.releaseVersion ?? 0;
      append(appId, { ts: clock.now(), process: 'paas', stream: 'platform', releaseVersion, message });
    },
    async deleteLogs(appId) {
      const log = logs.get(appId);
      logs.delete(appId);
      log?.wake.resolve();
      return log !== undefined;
    },
  };
}

function newest(entries: readonly AppLogEntry[], query: AppLogQuery): AppLogEntry[] {
  const found = entries.filter((entry) => matches(entry, query));
  return query.lines === 0 ? [] : found.slice(-query.lines);
}

function matches(entry: AppLogEntry, { since, process, releaseVersion }: AppLogQuery): boolean {
  return (
    (since === undefined || entry.ts >= since) &&
    (process === undefined || entry.process === process || entry.process.startsWith(`${process}.`)) &&
    (releaseVersion === undefined || entry.releaseVersion === releaseVersion)
  );
}
