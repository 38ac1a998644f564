import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import type { AppId } from '#shared/ids.ts';
import type { Log } from '#shared/log.ts';
import type { AppLogEntry, AppLogQuery, AppLogs } from '#shared/platform/app-logs.ts';
import { type AppLogCollector, openAppLogCollector } from './app-log-collector.ts';
import type { JournalEntry, JournalPosition, StoredEntry } from './app-logs-journal.ts';
import type { OutputWriter } from './output/output-writer.ts';

export interface LocalAppLogs extends AppLogs {
  /** For the workload driver. Opens the app's log when it is not open. */
  collectorOf(appId: AppId): Promise<AppLogCollector>;
  /** The newest lines of an instance's own output, oldest first. */
  readLastLines(appId: AppId, key: string, count: number): Promise<string[]>;
  /** Ends followers and closes files. Output that instances write from then on is collected after the next start. */
  close(): Promise<void>;
  /** Like `close`, and ends the process that reads their output. To be called when all instances have ended. */
  stop(): Promise<void>;
}

export interface LocalAppLogsOptions {
  /** `<app_id>/logs/` is in it. */
  workloadsDir: string;
  writer: OutputWriter;
  clock: Clock;
  log: Log;
}

/** Logs of apps as files on this machine. */
export function createLocalAppLogs({ workloadsDir, writer, clock, log }: LocalAppLogsOptions): LocalAppLogs {
  const collectors = new Map<AppId, Promise<AppLogCollector>>();
  const logsDirOf = (appId: AppId) => join(workloadsDir, appId, 'logs');

  function collectorOf(appId: AppId): Promise<AppLogCollector> {
    const open = collectors.get(appId);
    if (open !== undefined) return open;
    const opening = mkdir(logsDirOf(appId), { recursive: true, mode: 0o700 }).then(() =>
      openAppLogCollector({ directory: logsDirOf(appId), writer, clock, log }),
    );
    collectors.set(appId, opening);
    opening.catch(() => collectors.delete(appId));
    return opening;
  }

  async function existing(appId: AppId): Promise<AppLogCollector | undefined> {
    if (collectors.has(appId)) return collectorOf(appId);
    const exists = await readdir(logsDirOf(appId)).then(
      () => true,
      () => false,
    );
    return exists ? collectorOf(appId) : undefined;
  }

  async function closeAll(): Promise<void> {
    const open = [...collectors.values()];
    collectors.clear();
    await Promise.all(open.map(async (collector) => (await collector).close()));
  }

  return {
    collectorOf,
    async readLogs(appId, query) {
      const collector = await existing(appId);
      if (collector === undefined) return [];
      await collector.flush();
      const { journal } = collector;
      return (await journal.readNewest(query.lines, matcher(query), journal.end())).map(toAppLogEntry);
    },
    async *followLogs(appId, query, signal, after) {
      const collector = await collectorOf(appId);
      await collector.flush();
      const { journal } = collector;
      const wanted = matcher(query);
      const resumed = parsePosition(after, journal.end());
      let position = resumed ?? journal.end();
      if (resumed === undefined)
        for (const entry of await journal.readNewest(query.lines, wanted, position)) yield toAppLogEntry(entry);
      while (!signal.aborted && !collector.closed) {
        // Before the read, so that an append in between is noticed.
        const appended = collector.nextAppend(signal);
        let { entries, next } = await journal.readFrom(position);
        while (entries.length > 0 || next.segment !== position.segment) {
          position = next;
          for (const entry of entries) {
            if (signal.aborted) return;
            if (wanted(entry)) yield toAppLogEntry(entry);
          }
          ({ entries, next } = await journal.readFrom(position));
        }
        await appended;
      }
    },
    async appendPlatformLog(appId, message) {
      await (await collectorOf(appId)).appendPlatformLine(message);
    },
    async deleteLogs(appId) {
      const collector = await existing(appId);
      if (collector === undefined) return false;
      collectors.delete(appId);
      await collector.close();
      await rm(logsDirOf(appId), { recursive: true, force: true });
      return true;
    },
    async readLastLines(appId, key, count) {
      const collector = await collectorOf(appId);
      await collector.flush(key);
      const { journal } = collector;
      return (await journal.readNewest(count, (entry) => entry.k === key, journal.end())).map((entry) => entry.m);
    },
    async close() {
      await closeAll();
      await writer.detach();
    },
    async stop() {
      await closeAll();
      await writer.stop();
    },
  };
}

function matcher({ since, process, releaseVersion }: AppLogQuery): (entry: JournalEntry) => boolean {
  const from = since?.getTime() ?? 0;
  return (entry) =>
    entry.t >= from &&
    (process === undefined || entry.p === process || entry.p.startsWith(`${process}.`)) &&
    (releaseVersion === undefined || entry.v === releaseVersion);
}

const streams = { o: 'stdout', e: 'stderr', p: 'platform' } as const;

function toAppLogEntry({ t, p, s, v, m, end }: StoredEntry): AppLogEntry {
  const position = `${end.segment}.${end.offset}`;
  return { ts: new Date(t), process: p, stream: streams[s], releaseVersion: v, message: m, position };
}

/** At most the end: entries that a power cut has removed are not waited for. @returns undefined for text that is no position */
function parsePosition(text: string | undefined, end: JournalPosition): JournalPosition | undefined {
  const match = /^(\d{1,10})\.(\d{1,12})$/.exec(text ?? '');
  if (match === null) return undefined;
  const position = { segment: Number(match[1]), offset: Number(match[2]) };
  const isBeyondEnd = position.segment > end.segment || (position.segment === end.segment && position.offset > end.offset);
  return isBeyondEnd ? end : position;
}
