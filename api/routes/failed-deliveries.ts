import { AppError } from '#shared/errors.ts';
import type { RateLimitPolicy, RateLimits } from '#shared/rate-limits/rate-limits.ts';

/** Wrong signatures from an address, whatever they are for. */
const ofSource: RateLimitPolicy = { name: 'wrong-signatures', limit: 30, windowSeconds: 60 };
/** Wrong signatures for one secret, from all addresses that have never sent a right one. */
const ofSecret: RateLimitPolicy = { name: 'wrong-signatures-of-secret', limit: 300, windowSeconds: 60 };
const mostRemembered = 10_000;

export interface Sender {
  /** `sourceKey` of where the delivery comes from. */
  source: string;
  /** The app whose secret it is signed with; '' for the operator's. */
  secretOf: string;
}

/**
 * A body may be 25 MiB, and a signature is checked when all of it is here: who sends wrong ones is soon refused before.
 * What right ones come from an address, only its own failures can stop: a flood from elsewhere keeps no git host out.
 */
export interface FailedDeliveries {
  /** Costs nothing; to be asked before a body is read. @throws AppError rate_limited */
  check(sender: Sender): void;
  countFailure(sender: Sender): Promise<void>;
  countSuccess(sender: Sender): void;
}

/** Failures are counted over all processes; that a limit is reached, each process learns by one more. */
export function createFailedDeliveries(rateLimits: Pick<RateLimits, 'take'>, now: () => number): FailedDeliveries {
  /** Until when, in milliseconds. */
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
    // What is forgotten here, the counts still know.
    if (refused.size > mostRemembered) refused.clear();
  };
  return {
    check(sender) {
      const waits = limitsOf(sender).map(([{ name }, key]) => (refused.get(`${name}:${key}`) ?? 0) - now());
      const wait = Math.max(...waits);
      if (wait <= 0) return;
      const retryAfterSeconds = Math.ceil(wait / 1000);
      const message = `Too many deliveries with a wrong signature. Correct the secret at the git host, and let it deliver again in ${retryAfterSeconds} s.`;
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
