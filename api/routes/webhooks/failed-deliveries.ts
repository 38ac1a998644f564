import { AppError } from '#shared/errors.ts';
import { type EventLimits, eventPolicies } from '#shared/rate-limits/event-limits.ts';

const mostRemembered = 10_000;
const policy = eventPolicies.wrongSignatures;

/** Where a delivery comes from, and which secret it must be signed with. */
export interface Sender {
  /** `sourceKey` of where the delivery comes from. */
  source: string;
  /** Id of the app whose secret it is. '' for the operator's. */
  secretOf: string;
}

/**
 * Limits wrong signatures for one secret, from all addresses together, beside the limit of each address (failed-credentials.ts). An
 * address that has sent a right signature is not limited so: a flood from other addresses cannot lock a git host out.
 */
export interface FailedDeliveries {
  /** Cheap. Call it before a body is read. @throws AppError `rate_limited` */
  check(sender: Sender): void;
  /** Whether the sender has sent a right signature to this process. */
  isProven(sender: Sender): boolean;
  countFailure(sender: Sender): Promise<void>;
  countSuccess(sender: Sender): void;
}

/**
 * Failures are counted over all processes. A process learns that a limit is reached by one more failure.
 * @param proven where senders with a right signature are remembered
 */
export function createFailedDeliveries(
  limits: Pick<EventLimits, 'take' | 'refusedMilliseconds'>,
  proven: Set<string>,
): FailedDeliveries {
  const provenName = ({ source, secretOf }: Sender): string => `${source} ${secretOf}`;
  const isProven = (sender: Sender): boolean => proven.has(provenName(sender));
  return {
    isProven,
    check(sender) {
      const wait = isProven(sender) ? 0 : limits.refusedMilliseconds(policy, sender.secretOf);
      if (wait <= 0) return;
      const retryAfterSeconds = Math.ceil(wait / 1000);
      const message = `Too many deliveries with a wrong signature. Correct the secret at the git host, and deliver again in ${retryAfterSeconds} s.`;
      throw new AppError('rate_limited', message, { retryAfterSeconds });
    },
    async countFailure(sender) {
      if (!isProven(sender)) await limits.take(policy, sender.secretOf);
    },
    countSuccess(sender) {
      if (proven.size >= mostRemembered) proven.clear();
      proven.add(provenName(sender));
    },
  };
}
