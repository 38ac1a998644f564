import { AppError } from '#shared/errors.ts';

/**
 * Runs at most `concurrent` tasks at once, lets `waiting` more wait in order, and refuses all others, so that a flood of logins
 * costs bounded memory and time. @throws AppError rate_limited for a refused task
 */
export function createConcurrencyLimit(
  concurrent: number,
  waiting: number,
): <Result>(task: () => Promise<Result>) => Promise<Result> {
  let running = 0;
  const queue: (() => void)[] = [];
  return async (task) => {
    if (running >= concurrent) {
      if (queue.length >= waiting) {
        throw new AppError('rate_limited', 'Too many logins at the same time. Try again in a second.', {
          retryAfterSeconds: 1,
        });
      }
      // The task that ends passes its slot on, so `running` stays the same.
      await new Promise<void>((enter) => queue.push(enter));
    } else {
      running += 1;
    }
    try {
      return await task();
    } finally {
      const next = queue.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
