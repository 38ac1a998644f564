import { AppError } from '#shared/errors.ts';
import { limits } from '#shared/limits.ts';

/** Counts the event streams that are open in this process. */
export interface StreamLimits {
  /**
   * Counts a stream of a user.
   * @returns to be called once, when the stream ends
   * @throws AppError `rate_limited` when the user, or all users together, have too many
   */
  take(userId: string): () => void;
}

const retryAfterSeconds = 10;

/**
 * Bounds the event streams that are open at the same time.
 * @param ofUser the most of one user
 * @param all the most of the process
 */
export function createStreamLimits({ ofUser, all }: { ofUser: number; all: number } = limits.http.eventStreams): StreamLimits {
  const byUser = new Map<string, number>();
  let open = 0;
  return {
    take(userId) {
      const ofThis = byUser.get(userId) ?? 0;
      if (ofThis >= ofUser) {
        const message = `Too many open event streams: at most ${ofUser} for each user. Close one, and try again.`;
        throw new AppError('rate_limited', message, { retryAfterSeconds });
      }
      if (open >= all) {
        const message = `Too many open event streams on this platform. Try again in ${retryAfterSeconds} s, or read without streaming.`;
        throw new AppError('rate_limited', message, { retryAfterSeconds });
      }
      byUser.set(userId, ofThis + 1);
      open += 1;
      return () => {
        open -= 1;
        const left = (byUser.get(userId) ?? 1) - 1;
        if (left === 0) byUser.delete(userId);
        else byUser.set(userId, left);
      };
    },
  };
}
