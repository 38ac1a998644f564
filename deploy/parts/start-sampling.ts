import type { Lifetime } from '#deploy/parts/lifetime.ts';
import type { Context } from '#shared/core/context.ts';
import { runSampling } from '#shared/core/telemetry/app-sampling.ts';

/** Takes samples of what apps use, until the end. */
export function startSampling(lifetime: Lifetime, context: Context): void {
  const ending = new AbortController();
  const sampling = runSampling(context, ending.signal);
  lifetime.onEnd(() => {
    ending.abort();
    return sampling;
  });
}
