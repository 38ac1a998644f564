/** A line as it is stored. */
export interface LogEntry {
  /** Nanoseconds since 1970. */
  time: bigint;
  /** `process`, `release`, `pod` and `stream`. */
  labels: Readonly<Record<string, string>>;
  line: string;
}

/** Which lines. */
export interface LogQuery {
  /** Must all match: `app_id`, and `process` and `release` where one is asked for. */
  labels: Readonly<Record<string, string>>;
  /** Of one of these pods; left out: of all. */
  pods?: readonly string[];
  /** Nanoseconds, inclusive. */
  from: bigint;
  /** Nanoseconds, exclusive. */
  to: bigint;
  limit: number;
  /** Which ones, when there are more: 'backward' the newest, 'forward' the oldest. */
  direction: 'backward' | 'forward';
}

/** Where lines of apps are kept: Loki, or the cluster itself. */
export interface LogStore {
  /** In the order of time; entries of the same time in an order that is always the same. */
  query(query: LogQuery): Promise<LogEntry[]>;
  /** @param entries with the same labels */
  push(entries: readonly LogEntry[]): Promise<void>;
  /** Deletes all lines with these labels that it can delete. */
  delete(labels: Readonly<Record<string, string>>): Promise<void>;
}

/** The order of entries in an answer. */
export function compareEntries(a: LogEntry, b: LogEntry): number {
  if (a.time !== b.time) return a.time < b.time ? -1 : 1;
  const [one, other] = [a, b].map(({ labels, line }) => `${labels['pod']} ${labels['stream']} ${line}`);
  return (one ?? '') < (other ?? '') ? -1 : 1;
}
