/** What a process with fail points is told over IPC as `{ failPoint }`; it answers `{ failPoints }`, its visits by point. */
export type FailPointOrder =
  /** Die at the nth visit of the point from now on, or at the nth of any when no point is named. */
  | { kind: 'die'; point?: string; nth: number }
  /** Count anew, and live. */
  | { kind: 'count' }
  /** Only answer. */
  | { kind: 'tell' };

export type FailPointCounts = Record<string, number>;
