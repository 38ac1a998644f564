import { AppError } from '#shared/errors.ts';
import type { RateLimitPolicy, RateLimits } from '#shared/rate-limits/rate-limits.ts';

/** Wrong signatures from one address, for any secret. */
const ofSource: RateLimitPolicy = { name: 'wrong-signatures', limit: 30, windowSeconds: 60 };
/** Wrong signatures for one secret, from all addresses that never sent a right one. */
const ofSecret: RateLimitPolicy = { name: 'wrong-signatures-of-secret', limit: 300, windowSeconds: 60 };
const mostRemembered = 10_000;

/** Where a delivery comes from, and which secret it must be signed with. */
export interface Sender {
  /** `sourceKey` of where the delivery comes from. */
  source: string;
  /** Id of the app whose secret it is. '' for the operator's. */
  secretOf: string;
}

/**
 * Refuses senders of wrong signatures before their bodies are read. A body may have 25 MiB, and its signature can be checked only
 * when all of it is there. An address that has sent a right signature is refused for its own failures only: a flood from other
 * addresses cannot lock a git host out.
 */
export interface FailedDeliveries {
  /** Cheap. Call it before a body is read. @throws AppError `rate_limited` */
  check(sender: Sender): void;
  countFailure(sender: Sender): Promise<void>;
  countSuccess(sender: Sender): void;
}

/**
 * Failures are counted over all processes. A process learns that a limit is reached by one more failure.
 * @param now milliseconds since 1970
 */
export function createFailedDeliveries(rateLimits: Pick<RateLimits, 'take'>, now: () => number): FailedDeliveries {
  /** When the refusal ends, in milliseconds since 1970. */
  const refused = new Map<string, number>();
  const proven = new Set<string>();
  const provenName = ({ source, secretOf }: Sender): string => `${source} ${secretOf}`;
  const limitsOf = (sender: Sender): [RateLimitPolicy, string][] =>
    proven.has(provenName(sender))
      ? [[ofSource, sender.source]]
      : [
          [ofSource, sender.source],
          [ofSecret, sender.secretOf],
        ];
  const forgetPast = (): void => {
    for (const [name, until] of refused) if (until <= now()) refused.delete(name);
    // The counts are in the database: nothing is lost.
    if (refused.size > mostRemembered) refused.clear();
  };
  return {
    check(sender) {
      const waits = limitsOf(sender).map(([{ name }, key]) => (refused.get(`${name}:${key}`) ?? 0) - now());
      const wait = Math.max(...waits);
      if (wait <= 0) return;
      const retryAfterSeconds = Math.ceil(wait / 1000);
      const message = `Too many deliveries with a wrong signature. Correct the secret at the git host, and deliver again in ${retryAfterSeconds} s.`;
      throw new AppError('rate_limited', message, { retryAfterSeconds });
    },
    async countFailure(sender) {
      for (const [policy, key] of limitsOf(sender)) {
        const { granted, remaining, resetMilliseconds } = await rateLimits.take(policy, key);
        if (granted && remaining > 0) continue;
        refused.set(`${policy.name}:${key}`, now() + resetMilliseconds);
        if (refused.size > mostRemembered) forgetPast();
      }
    },
    countSuccess(sender) {
      if (proven.size >= mostRemembered) proven.clear();
      proven.add(provenName(sender));
    },
  };
}
