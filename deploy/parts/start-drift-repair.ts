import type { HousekeepingTask } from '#deploy/parts/housekeeping.ts';
import type { Lifetime } from '#deploy/parts/lifetime.ts';
import type { Context } from '#shared/core/context.ts';
import { followDrift } from '#shared/core/drift/drift-repair.ts';
import { sweepOrphans } from '#shared/core/drift/orphans.ts';

/**
 * Puts back what others change on the platform, until the end; nothing where nobody else can.
 * @returns what housekeeping does about it
 */
export function startDriftRepair(lifetime: Lifetime, context: Context): HousekeepingTask[] {
  const { drift } = context.platform;
  if (drift === undefined) return [];
  const ending = new AbortController();
  const following = followDrift(context, drift, ending.signal);
  lifetime.onEnd(() => {
    ending.abort();
    return following;
  });
  return [{ name: 'objects of apps that do not exist', sweep: () => sweepOrphans(context, drift, ending.signal) }];
}
