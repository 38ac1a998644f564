import type { Clock } from '#shared/clock.ts';
import type { DriftTarget } from '#shared/platform/drift.ts';

/** How long a change waits, so that the platform's own write is known and several changes are one report. */
export const settleMilliseconds = 1000;
/** Between two reports of one object: each time twice as long, so that a controller that fights the platform costs little. */
const firstGapMilliseconds = 2000;
const longestGapMilliseconds = 600_000;

interface History {
  /** When the object was reported last. */
  at: number;
  gap: number;
}

/** When an object is reported that has drifted: at first at once, then less and less often until it has been quiet for a while. */
export class DriftReports {
  readonly #histories = new Map<string, History>();
  readonly #clock: Pick<Clock, 'now'>;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Milliseconds until the object may be reported; the report counts from then. */
  schedule(key: string): number {
    const now = this.#clock.now().getTime();
    const before = this.#histories.get(key);
    const isQuiet = before === undefined || now - before.at > 4 * before.gap;
    const at = isQuiet ? now : Math.max(now, before.at + before.gap);
    this.#histories.set(key, { at, gap: isQuiet ? firstGapMilliseconds : Math.min(before.gap * 2, longestGapMilliseconds) });
    this.#forgetQuietOnes(now);
    return at - now;
  }

  #forgetQuietOnes(now: number): void {
    for (const [key, { at, gap }] of this.#histories) if (now - at > 4 * gap) this.#histories.delete(key);
  }
}

/** For logs and as a key: 'app <id>'. */
export function describeTarget(target: DriftTarget): string {
  switch (target.of) {
    case 'app':
      return `app ${target.appId}`;
    case 'tenant':
      return `tenant ${target.tenantId}`;
    case 'certificate':
      return `certificate ${target.host}`;
  }
}
