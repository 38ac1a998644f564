import type { HousekeepingTask } from '#deploy/parts/housekeeping.ts';
import { abandonedPushSeconds } from '#deploy/parts/open-git-storage.ts';
import { foldBuildStarts } from '#shared/core/builds/build-starts-store.ts';
import { enqueueImageCollections } from '#shared/core/builds/image-collection.ts';
import type { Context } from '#shared/core/context.ts';
import { sweepSamples } from '#shared/core/telemetry/app-sampling.ts';
import { sweepDeliveries } from '#shared/core/webhooks/webhooks-service.ts';
import type { IdempotencyKeys } from '#shared/idempotency/idempotency.ts';
import { sweepRefreshTokens } from '#shared/identity/embedded/embedded-identity.ts';
import type { PasswordIdentity } from '#shared/identity/password-identity.ts';
import type { EventLimits } from '#shared/rate-limits/event-limits.ts';
import type { RateLimits } from '#shared/rate-limits/rate-limits.ts';

export interface HousekeepingParts {
  context: Context;
  identity: PasswordIdentity;
  rateLimits: Pick<RateLimits, 'sweep'>;
  eventLimits: Pick<EventLimits, 'sweep'>;
  idempotencyKeys: Pick<IdempotencyKeys, 'sweep'>;
}

/** Everything in the database and in the git storage that has to be renewed or removed from time to time. */
export function listHousekeepingTasks(parts: HousekeepingParts): HousekeepingTask[] {
  const { context, identity, rateLimits, eventLimits, idempotencyKeys } = parts;
  const { db, clock, git } = context;
  return [
    { name: 'rate limits', sweep: () => rateLimits.sweep() },
    { name: 'event limits', sweep: () => eventLimits.sweep() },
    { name: 'idempotency keys', sweep: () => idempotencyKeys.sweep() },
    { name: 'signing keys', sweep: () => identity.rotateKeys() },
    { name: 'failed logins', sweep: () => identity.sweepLoginAttempts() },
    { name: 'refresh tokens', sweep: () => sweepRefreshTokens(db, clock) },
    { name: 'samples of apps', sweep: () => sweepSamples(context) },
    { name: 'webhook deliveries', sweep: () => sweepDeliveries(context) },
    { name: 'build starts', sweep: () => foldBuildStarts(db) },
    { name: 'images of old releases', sweep: () => enqueueImageCollections(context) },
    { name: 'quarantines', sweep: () => git.sweep(abandonedPushSeconds) },
  ];
}
