import { AppError } from '#shared/errors.ts';
import { limits } from '#shared/limits.ts';

/** How many bytes of bodies may be in memory at once, in this process. */
export interface BodyLimits {
  all: number;
  ofSource: number;
  /** Of all sources together that never sent a right signature. */
  unproven: number;
}

/** A body that is being read, or waits for its signature to be checked. */
export interface OpenBody {
  /** @throws AppError `rate_limited` when there is no room for so many more bytes */
  add(bytes: number): void;
  /** To be called once, when the body is no longer needed. */
  release(): void;
}

/** Limits the memory that deliveries take before their signatures are known. */
export interface BodyBudget {
  /** @param proven whether the source has sent a right signature before: the others cannot take its room */
  open(source: string, proven: boolean): OpenBody;
}

const retryAfterSeconds = 5;

/** Bounds the webhook bodies that are in memory at the same time, by source and in all. */
export function createBodyBudget(most: BodyLimits = limits.http.webhooksInFlight): BodyBudget {
  const bySource = new Map<string, number>();
  const total = { all: 0, unproven: 0 };
  const change = (source: string, proven: boolean, bytes: number): void => {
    total.all += bytes;
    if (!proven) total.unproven += bytes;
    const ofSource = (bySource.get(source) ?? 0) + bytes;
    if (ofSource === 0) bySource.delete(source);
    else bySource.set(source, ofSource);
  };
  return {
    open(source, proven) {
      let held = 0;
      return {
        add(bytes) {
          const fits =
            total.all + bytes <= most.all &&
            (bySource.get(source) ?? 0) + bytes <= most.ofSource &&
            (proven || total.unproven + bytes <= most.unproven);
          if (!fits) {
            const message = `Too many deliveries are being received. Deliver again in ${retryAfterSeconds} s.`;
            throw new AppError('rate_limited', message, { retryAfterSeconds });
          }
          held += bytes;
          change(source, proven, bytes);
        },
        release() {
          change(source, proven, -held);
          held = 0;
        },
      };
    },
  };
}
