/**
 * Logs and metrics of apps: the nouns, and the interfaces that entry points use.
 * A method that takes a caller throws `not_found` for what the caller's tenant does not own and `forbidden` for what the role
 * does not allow. `app` is an id or a name; ids take precedence.
 */
import type { Caller } from '#shared/core/accounts/principals.ts';
import type { AppLogEntry, AppLogQuery } from '#shared/platform/app-logs.ts';
import type { MetricKind } from '#shared/platform/metrics.ts';

export interface Logs {
  /** For a reader who goes on. @throws AppError as the methods below, when the caller may no longer read the logs of the app */
  checkAccess(caller: Caller, app: string): Promise<void>;
  readLogs(caller: Caller, app: string, query: AppLogQuery): Promise<readonly AppLogEntry[]>;
  followLogs(
    caller: Caller,
    app: string,
    query: AppLogQuery,
    signal: AbortSignal,
    after?: string,
  ): Promise<AsyncIterable<AppLogEntry>>;
}

/** The time at which its step begins, and the value over that step. */
export type MetricPoint = readonly [ts: Date, value: number];

export interface MetricSeries {
  name: MetricKind;
  /** cores; bytes (the most of the step, all instances together); requests (in the step); milliseconds (the mean). */
  unit: string;
  labels: Readonly<Record<string, string>>;
  stepSeconds: number;
  /** In the order of time. Steps in which nothing ran, or of which there is nothing to say, are left out. */
  points: readonly MetricPoint[];
}

export interface AppMetrics {
  /** One series a process type, of one kind or of all; `rangeSeconds` up to now, a minute to 30 days. */
  readMetrics(caller: Caller, app: string, query: { kind?: MetricKind; rangeSeconds: number }): Promise<readonly MetricSeries[]>;
}
