export interface LogEntry {
  /** ISO 8601, UTC. */
  readonly ts: string;
  readonly process: string;
  readonly stream: string;
  readonly release_version: number;
  readonly message: string;
}

const overlapMs = 5000;

/**
 * Makes one log out of several connections. Entries of two processes may come out of order, so that the last one seen
 * does not say what is still to come: a new connection asks for the last seconds once more, and what was shown of them is
 * left out.
 */
export class RecentEntries {
  readonly #shown = new Map<string, { timeMs: number; count: number }>();
  /** How many of each the present connection has sent. */
  #sent = new Map<string, number>();
  #oldestMs: number | undefined;
  #newestMs: number | undefined;

  /** Begins a connection: the time it asks from, undefined for the first. */
  resumeFrom(): string | undefined {
    this.#sent = new Map();
    if (this.#oldestMs === undefined || this.#newestMs === undefined) return undefined;
    // Never before what was shown first: of older entries no more were wanted.
    return new Date(Math.max(this.#oldestMs, this.#newestMs - overlapMs)).toISOString();
  }

  /** Whether no earlier connection showed it. Two entries that are alike in all fields are still two. */
  isNew(entry: LogEntry): boolean {
    const key = JSON.stringify([entry.ts, entry.process, entry.stream, entry.release_version, entry.message]);
    const sent = (this.#sent.get(key) ?? 0) + 1;
    this.#sent.set(key, sent);
    const shown = this.#shown.get(key);
    if (shown !== undefined && sent <= shown.count) return false;
    const timeMs = Date.parse(entry.ts);
    this.#shown.set(key, { timeMs, count: sent });
    this.#oldestMs ??= timeMs;
    this.#newestMs = Math.max(this.#newestMs ?? timeMs, timeMs);
    this.#forgetOld();
    return true;
  }

  /** What is older than any new connection would ask for. Map order is near enough to time order. */
  #forgetOld(): void {
    for (const [key, { timeMs }] of this.#shown) {
      if (timeMs >= (this.#newestMs ?? 0) - 2 * overlapMs) return;
      this.#shown.delete(key);
      this.#sent.delete(key);
    }
  }
}
