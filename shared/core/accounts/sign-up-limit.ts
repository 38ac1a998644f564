import type { Context } from '#shared/core/context.ts';
import { secondsPerHour } from '#shared/durations.ts';
import { AppError } from '#shared/errors.ts';
import type { IdentityUser, LoginOrigin } from '#shared/identity/identity.ts';
import { signUpPolicy } from '#shared/rate-limits/event-limits.ts';

/**
 * Counts an account for the source that creates it. What fails is not counted.
 * @param create creates the user
 * @throws AppError `rate_limited` when the source has created its accounts of the day; what `create` throws
 */
export async function countSignUp(
  { eventLimits, settings }: Pick<Context, 'eventLimits' | 'settings'>,
  origin: LoginOrigin | undefined,
  create: () => Promise<IdentityUser>,
): Promise<IdentityUser> {
  if (origin === undefined) return create();
  const policy = signUpPolicy(settings.signUpsPerAddress);
  const { granted, resetMilliseconds } = await eventLimits.take(policy, origin.source);
  if (!granted) {
    const retryAfterSeconds = Math.max(1, Math.ceil(resetMilliseconds / 1000));
    const hours = Math.ceil(retryAfterSeconds / secondsPerHour);
    const message = `Too many accounts were created from your address today: at most ${policy.limit}. Try again in ${hours} h, or ask a team for an invitation.`;
    throw new AppError('rate_limited', message, { retryAfterSeconds });
  }
  try {
    return await create();
  } catch (error) {
    await eventLimits.giveBack(policy, origin.source);
    throw error;
  }
}
