import { enqueueEnsureWorkload, enqueueSettleDomain } from '#shared/core/app-jobs.ts';
import { readAppById } from '#shared/core/apps/apps-store.ts';
import { readDomain, readHolder } from '#shared/core/apps/domains-store.ts';
import { isNeverPublic } from '#shared/core/apps/host-name.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/schema.ts';
import { isUniqueViolation } from '#shared/database/violations.ts';
import type { AppId } from '#shared/ids.ts';

/** The TXT record that proves control of a host. */
export interface DomainProof {
  name: string;
  value: string;
}

export function proofOf(host: string, proof: string): DomainProof {
  return { name: `_paas.${host}`, value: `paas-domain=${proof}` };
}

/** Where no proof can be had, and none is needed: a machine of one's own, and names that the public DNS never has. */
export function needsNoProof({ addresses }: Pick<Context, 'addresses'>, host: string): boolean {
  return isNeverPublic(addresses.appsDomain) || isNeverPublic(host);
}

const shortestWaitSeconds = 2;
const longestWaitSeconds = 15 * 60;
const patienceSeconds = 7 * 24 * 60 * 60;

/** Looks for the proof of a claim until it is there, more and more seldom; gives up after a week. Asking again begins anew. */
export async function runSettleDomainJob(context: Context, appId: AppId, host: string): Promise<void> {
  const claim = await readDomain(context.db, appId, host);
  if (claim?.status !== 'pending' || (await settleDomain(context, appId, host))) return;
  const ageSeconds = (context.clock.now().getTime() - claim.created_at.getTime()) / 1000;
  if (ageSeconds > patienceSeconds) return;
  await lookLater(context, context.db, appId, host, ageSeconds / 4);
}

export async function lookLater(context: Context, db: Db, appId: AppId, host: string, seconds = 0): Promise<void> {
  const wait = Math.min(Math.max(seconds, shortestWaitSeconds), longestWaitSeconds);
  const runAt = new Date(context.clock.now().getTime() + wait * 1000);
  await enqueueSettleDomain(context, db, appId, host, runAt);
}

/**
 * Makes a claim active when it is proven and the host is free. Whoever controls the DNS of a host now has it: another
 * app's is then taken away, and the claim waits until no route leads there any more. False while it is pending.
 */
export async function settleDomain(context: Context, appId: AppId, host: string): Promise<boolean> {
  const claim = await readDomain(context.db, appId, host);
  if (claim === undefined) return false;
  const proof = proofOf(host, claim.proof);
  const free = needsNoProof(context, host);
  const proven = free || (await context.resolver.readTexts(proof.name)).includes(proof.value);
  if (!proven) return false;
  try {
    return await context.db.transaction().execute(async (trx) => {
      const app = await readAppById(trx, appId);
      if (app === undefined || app.deleted_at !== null) return false;
      const holder = await readHolder(trx, host);
      if (holder === undefined) {
        await activate(context, trx, appId, host);
        return true;
      }
      if (holder.app_id === appId) return holder.status === 'active';
      // Without proof the first one keeps it, as long as the app is there.
      if (holder.status === 'active' && (!free || holder.deleted_at !== null)) {
        await takeAway(context, trx, holder.app_id, host);
      }
      return false;
    });
  } catch (error) {
    // Another claim was quicker.
    if (isUniqueViolation(error)) return false;
    throw error;
  }
}

async function activate(context: Context, trx: Db, appId: AppId, host: string): Promise<void> {
  await trx
    .updateTable('domains')
    .set({ status: 'active' })
    .where('app_id', '=', appId)
    .where('host', '=', host)
    .where('status', '=', 'pending')
    .execute();
  await enqueueEnsureWorkload(context, trx, appId);
}

/** The row stays until the route is gone (`forgetTakenHosts`): a host must not lead to two apps, not for a moment. */
export async function takeAway(context: Context, trx: Db, appId: AppId, host: string): Promise<void> {
  await trx
    .updateTable('domains')
    .set({ status: 'removing' })
    .where('app_id', '=', appId)
    .where('host', '=', host)
    .where('status', '=', 'active')
    .execute();
  await enqueueEnsureWorkload(context, trx, appId);
}

/** To be read before the route is brought up to date, and forgotten after it. */
export async function readTakenHosts(db: Db, appId: AppId): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('domains')
    .select('host')
    .where('app_id', '=', appId)
    .where('status', '=', 'removing')
    .execute();
  return rows.map((row) => row.host);
}

export async function forgetTakenHosts(db: Db, appId: AppId, hosts: readonly string[]): Promise<void> {
  if (hosts.length === 0) return;
  await db
    .deleteFrom('domains')
    .where('app_id', '=', appId)
    .where('host', 'in', hosts)
    .where('status', '=', 'removing')
    .execute();
}
