import { limits } from '#shared/limits.ts';
import {
  type RateLimitPolicy,
  type RateLimits,
  type RateLimitVerdict,
  rateLimitPolicies,
} from '#shared/rate-limits/rate-limits.ts';

/** Who calls: a token, and the user it belongs to. */
export interface CallSubject {
  /** `jti` of an access token, or id of an API token. */
  tokenId: string;
  userId: string;
}

/** A verdict, and the limit that it is about. */
export interface CallVerdict extends RateLimitVerdict {
  policy: RateLimitPolicy;
}

/** Limits of the calls of tokens, and of all tokens of a user together. */
export interface CallLimits {
  take(subject: CallSubject): Promise<CallVerdict>;
  /** The refusal that `take` would answer, as far as this process knows without asking anybody; else undefined. */
  refusal(subject: CallSubject): CallVerdict | undefined;
}

/** The limit that clients see. It is counted in units, see below. */
const ofUser: RateLimitPolicy = { name: 'user', limit: limits.http.userPerMinute, windowSeconds: 60 };
/** Calls of a user that are counted by one statement. */
const unitCalls = 20;
const unitsOfUser: RateLimitPolicy = { name: 'user-units', limit: ofUser.limit / unitCalls, windowSeconds: 60 };
const mostUsers = 10_000;

/**
 * A token has 600 calls a minute, exact to the call (SPEC.md §8). All tokens of a user together have 1800, so that creating tokens
 * does not lift the limit. That wider limit is counted in units of twenty calls, when a process has seen so many of a user: it costs
 * a statement for every twentieth call, none for users with few calls, and is exact to 19 calls a process.
 * @param uncounted where calls by user are remembered that are not counted as a unit yet
 */
export function createCallLimits(
  rateLimits: Pick<RateLimits, 'take' | 'refusedMilliseconds'>,
  uncounted: Map<string, number> = new Map(),
): CallLimits {
  const ofToken = rateLimitPolicies.authenticated;

  /** By user, the statement that counts a unit. Further calls of the user wait for it: many at once may exceed the limit otherwise. */
  const counting = new Map<string, Promise<CallVerdict | undefined>>();

  const countUnit = async (userId: string): Promise<CallVerdict | undefined> => {
    try {
      const { granted, resetMilliseconds } = await rateLimits.take(unitsOfUser, userId);
      return granted ? undefined : refusalOf(ofUser, resetMilliseconds);
    } finally {
      counting.delete(userId);
    }
  };
  /** The refusal of a call; undefined when the user may make it. */
  const takeUnit = async (userId: string): Promise<CallVerdict | undefined> => {
    for (let unit = counting.get(userId); unit !== undefined; unit = counting.get(userId)) {
      const refused = await unit;
      if (refused !== undefined) return refused;
    }
    const calls = (uncounted.get(userId) ?? 0) + 1;
    if (calls < unitCalls) {
      if (uncounted.size >= mostUsers) uncounted.clear();
      uncounted.set(userId, calls);
      return undefined;
    }
    uncounted.delete(userId);
    const unit = countUnit(userId);
    counting.set(userId, unit);
    return unit;
  };

  const refusal = ({ tokenId, userId }: CallSubject): CallVerdict | undefined => {
    const userWait = rateLimits.refusedMilliseconds(unitsOfUser, userId);
    if (userWait > 0) return refusalOf(ofUser, userWait);
    const tokenWait = rateLimits.refusedMilliseconds(ofToken, tokenId);
    return tokenWait > 0 ? refusalOf(ofToken, tokenWait) : undefined;
  };

  return {
    async take(subject) {
      const known = refusal(subject);
      if (known !== undefined) return known;
      const [verdict, refused] = await Promise.all([rateLimits.take(ofToken, subject.tokenId), takeUnit(subject.userId)]);
      return refused ?? { policy: ofToken, ...verdict };
    },
    refusal,
  };
}

function refusalOf(policy: RateLimitPolicy, resetMilliseconds: number): CallVerdict {
  return { policy, granted: false, remaining: 0, resetMilliseconds };
}
