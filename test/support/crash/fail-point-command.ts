/** A message to a process with fail points, over IPC as `{ failPoint }`. It answers with `{ failPoints }`: `FailPointCounts`. */
export type FailPointCommand =
  /** Die when the point is reached for the nth time from now on; without `point`, when any point is. */
  | { kind: 'die'; point?: string; nth: number }
  /** Do not die, and count from zero. */
  | { kind: 'reset' }
  /** Only answer. */
  | { kind: 'report' };

/** How often each fail point was reached. */
export type FailPointCounts = Record<string, number>;
