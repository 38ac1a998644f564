/** Port: what apps' processes print, and what the platform logs about them. */
import type { AppId } from '#shared/ids.ts';

/** One line. */
export interface AppLogEntry {
  /** When it was written, or a little later; never before, so that `since` loses no line. */
  ts: Date;
  /** `<type>.<n>`, or 'paas' for what the platform logs about the app (started, crashed, scaled). */
  process: string;
  stream: 'stdout' | 'stderr' | 'platform';
  releaseVersion: number;
  message: string;
  /** For `after`: names the place in the log behind this entry, with the characters [0-9.]. It never changes. */
  position: string;
}

/** Which entries. */
export interface AppLogQuery {
  /** This many of the newest entries, oldest first. */
  lines: number;
  since?: Date;
  /** A type ('web') or an instance ('web.1'). */
  process?: string;
  releaseVersion?: number;
}

/** The verbs of app logs. */
export interface AppLogs {
  /**
   * Entries are kept over deploys, crashes and restarts of the platform.
   *
   * Kubernetes: a range query of Loki by the labels app, process and release.
   */
  readLogs(appId: AppId, query: AppLogQuery): Promise<readonly AppLogEntry[]>;
  /**
   * Yields what `readLogs` returns, then new entries as they are written, until the signal aborts: no entry is missing and
   * none comes twice. With `after`, it yields all entries behind that position instead of those of `readLogs`; an invalid
   * position is ignored.
   *
   * Kubernetes: `tail` of Loki, and a range query for what was written before it began.
   */
  followLogs(appId: AppId, query: AppLogQuery, signal: AbortSignal, after?: string): AsyncIterable<AppLogEntry>;
  /**
   * Adds an entry of the process 'paas'.
   *
   * Kubernetes: pushes a line to Loki.
   */
  appendPlatformLog(appId: AppId, message: string): Promise<void>;
  /**
   * Deletes all entries of the app. False when there were none.
   *
   * Kubernetes: a delete request to Loki's compactor.
   */
  deleteLogs(appId: AppId): Promise<boolean>;
}
