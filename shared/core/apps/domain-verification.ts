import { enqueueEnsureWorkload, enqueueSettleDomain } from '#shared/core/apps/app-jobs.ts';
import { readAppById } from '#shared/core/apps/apps-store.ts';
import { activateDomain, beginDomainRemoval, readDomain, readHolder } from '#shared/core/apps/domains-store.ts';
import { isNeverPublic } from '#shared/core/apps/host-name.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/db.ts';
import { isUniqueViolation } from '#shared/database/violations.ts';
import { addSeconds, secondsPerDay, secondsPerMinute } from '#shared/durations.ts';
import type { AppId } from '#shared/ids.ts';

/** The TXT record that proves control of a host. */
export interface DomainProof {
  name: string;
  value: string;
}

/** @param proof the random text of the domain's row */
export function proofOf(host: string, proof: string): DomainProof {
  return { name: `_paas.${host}`, value: `paas-domain=${proof}` };
}

/** Names that the public DNS never has cannot be proven; neither can any on a platform that only its own machine reaches. */
export function needsNoProof({ addresses }: Pick<Context, 'addresses'>, host: string): boolean {
  return isNeverPublic(addresses.appsDomain) || isNeverPublic(host);
}

const shortestWaitSeconds = 2;
const longestWaitSeconds = 15 * secondsPerMinute;
const giveUpSeconds = 7 * secondsPerDay;

/**
 * Looks for the proof of a pending domain, and again after a quarter of its age, until it is active. After a week it gives
 * up; adding the domain again starts anew.
 */
export async function runSettleDomainJob(context: Context, appId: AppId, host: string): Promise<void> {
  const domain = await readDomain(context.db, appId, host);
  if (domain?.status !== 'pending' || (await verifyDomain(context, appId, host))) return;
  const ageSeconds = (context.clock.now().getTime() - domain.created_at.getTime()) / 1000;
  if (ageSeconds > giveUpSeconds) return;
  await scheduleVerification(context, context.db, appId, host, ageSeconds / 4);
}

/** Enqueues the next look for the proof, in 2 seconds to 15 minutes. */
export async function scheduleVerification(
  context: Context,
  db: Db,
  appId: AppId,
  host: string,
  wantedSeconds = 0,
): Promise<void> {
  const seconds = Math.min(Math.max(wantedSeconds, shortestWaitSeconds), longestWaitSeconds);
  await enqueueSettleDomain(context, db, appId, host, addSeconds(context.clock.now(), seconds));
}

/**
 * Makes a pending domain active once it is proven and no app has the host. A proof shows who controls the host's DNS now,
 * so an app that has the host loses it, and this domain stays pending until no route leads to that app.
 * @returns whether the domain is active
 */
export async function verifyDomain(context: Context, appId: AppId, host: string): Promise<boolean> {
  const domain = await readDomain(context.db, appId, host);
  if (domain === undefined) return false;
  const proof = proofOf(host, domain.proof);
  const isFree = needsNoProof(context, host);
  const isProven = isFree || (await context.resolver.readTexts(proof.name)).includes(proof.value);
  if (!isProven) return false;
  try {
    return await context.db.transaction().execute(async (trx) => {
      const app = await readAppById(trx, appId);
      if (app === undefined || app.deleted_at !== null) return false;
      const holder = await readHolder(trx, host);
      if (holder === undefined) {
        await activateDomain(trx, appId, host);
        await enqueueEnsureWorkload(context, trx, appId);
        return true;
      }
      if (holder.app_id === appId) return holder.status === 'active';
      // Without proofs the first app keeps the host, as long as it is not deleted.
      if (holder.status === 'active' && (!isFree || holder.deleted_at !== null))
        await removeFromRoutes(context, trx, holder.app_id, host);
      return false;
    });
  } catch (error) {
    // Another app's domain became active at the same moment.
    if (isUniqueViolation(error)) return false;
    throw error;
  }
}

/** The row stays until the route is removed (see `deleteRemovedHosts`): a host must never lead to two apps. */
export async function removeFromRoutes(context: Context, trx: Db, appId: AppId, host: string): Promise<void> {
  await beginDomainRemoval(trx, appId, host);
  await enqueueEnsureWorkload(context, trx, appId);
}
