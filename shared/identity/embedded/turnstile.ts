import { AppError } from '#shared/errors.ts';

/**
 * Lets `width` works run at once and `waiting` more wait in order; refuses the rest with `rate_limited`, so that a flood
 * costs bounded memory and time.
 */
export function createTurnstile(width: number, waiting: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let running = 0;
  const queue: (() => void)[] = [];
  return async (work) => {
    if (running >= width) {
      if (queue.length >= waiting) {
        throw new AppError('rate_limited', 'Too many people are logging in at once. Try again in a second.', {
          retryAfterSeconds: 1,
        });
      }
      // Whoever leaves hands its place over: `running` stays as it is.
      await new Promise<void>((enter) => queue.push(enter));
    } else {
      running += 1;
    }
    try {
      return await work();
    } finally {
      const next = queue.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
