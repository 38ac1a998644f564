/** Port: the output of apps' processes. */
import type { AppId } from '#shared/ids.ts';

export interface AppLogEntry {
  /** When it was written, or a little later; never before, so that `since` loses no line. */
  ts: Date;
  /** `<type>.<n>`, or 'paas' for what the platform says about the app (started, crashed, scaled). */
  process: string;
  stream: 'stdout' | 'stderr' | 'platform';
  releaseVersion: number;
  message: string;
  /** Where the log goes on behind it, for `after`; of [0-9.]. The same as long as the entry is kept. */
  position: string;
}

export interface AppLogQuery {
  /** Newest that many, in time order. */
  lines: number;
  since?: Date;
  /** A type ('web') or an instance ('web.1'). */
  process?: string;
  releaseVersion?: number;
}

export interface AppLogs {
  /** Kept over deploys, crashes and restarts of the platform. */
  readLogs(appId: AppId, query: AppLogQuery): Promise<readonly AppLogEntry[]>;
  /**
   * First what `readLogs` gives, then new entries as they come, with no gap and none twice, until the signal aborts. With
   * `after` instead of `readLogs` all behind that position; what is no position counts as none.
   */
  followLogs(appId: AppId, query: AppLogQuery, signal: AbortSignal, after?: string): AsyncIterable<AppLogEntry>;
  /** Adds an entry in the platform's own name. */
  appendPlatformLog(appId: AppId, message: string): Promise<void>;
  deleteLogs(appId: AppId): Promise<boolean>;
}
