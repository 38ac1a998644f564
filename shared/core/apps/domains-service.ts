import { requireApp, requireAppToChange } from '#shared/core/apps/app-access.ts';
import type { Domain, Domains } from '#shared/core/apps/apps.ts';
import { type AppRow, lockApp } from '#shared/core/apps/apps-store.ts';
import { lookLater, needsNoProof, proofOf, settleDomain, takeAway } from '#shared/core/apps/domain-settlement.ts';
import { type DomainRow, readDomain, readHolder } from '#shared/core/apps/domains-store.ts';
import { normalizeHost, parseHost } from '#shared/core/apps/host-name.ts';
import type { Context } from '#shared/core/context.ts';
import { AppError, notFound } from '#shared/errors.ts';
import { limits } from '#shared/limits.ts';

export function createDomains(context: Context): Domains {
  const { db, clock } = context;
  return {
    async listDomains(caller, app) {
      const { id } = (await requireApp(context, caller, app)).row;
      const rows = await db
        .selectFrom('domains')
        .selectAll()
        .where('app_id', '=', id)
        .where('status', '!=', 'removing')
        .orderBy('created_at')
        .orderBy('host')
        .execute();
      return Promise.all(rows.map((row) => present(context, row)));
    },

    async addDomain(caller, app, text) {
      const { row } = await requireAppToChange(context, caller, app);
      const host = parseHost(text, context.addresses);
      const added = await db.transaction().execute(async (trx) => {
        const locked = await lockApp(trx, row.id);
        if (locked === undefined || locked.deleted_at !== null) throw notFound('app');
        const known = await readDomain(trx, row.id, host);
        if (known?.status === 'removing') throw new AppError('conflict', `${host} is just being removed. Try again in a moment.`);
        if (known !== undefined) return false;
        const holder = await readHolder(trx, host);
        if (holder !== undefined) refuseTaken(context, row, holder);
        const { count } = await trx
          .selectFrom('domains')
          .select((domain) => domain.fn.countAll<number>().as('count'))
          .where('app_id', '=', row.id)
          .executeTakeFirstOrThrow();
        if (count >= limits.app.domains) {
          throw new AppError(
            'conflict',
            `${row.name} has ${count} domains, which is the most an app can have. Remove one first.`,
          );
        }
        await trx
          .insertInto('domains')
          .values({ app_id: row.id, host, status: 'pending', proof: newProof(), created_at: clock.now() })
          .execute();
        return true;
      });
      const settled = await settleDomain(context, row.id, host);
      if (!settled) await lookLater(context, db, row.id, host);
      const domain = await readDomain(db, row.id, host);
      if (domain === undefined) throw notFound('domain');
      return { domain: await present(context, domain), added };
    },

    async removeDomain(caller, app, text) {
      const { row } = await requireAppToChange(context, caller, app);
      const host = normalizeHost(text) ?? '';
      await db.transaction().execute(async (trx) => {
        const domain = await readDomain(trx, row.id, host);
        if (domain === undefined || domain.status === 'removing') throw notFound('domain');
        if (domain.status === 'active') return takeAway(context, trx, row.id, host);
        await trx.deleteFrom('domains').where('app_id', '=', row.id).where('host', '=', host).execute();
      });
    },
  };
}

/** What can never be had is refused at once; what a proof may still bring over is claimed. */
function refuseTaken(
  context: Context,
  app: AppRow,
  holder: { tenant_id: string; name: string; deleted_at: Date | null; host: string; status: string },
): void {
  if (holder.deleted_at !== null || holder.status === 'removing') return;
  if (holder.tenant_id === app.tenant_id) {
    throw new AppError('conflict', `${holder.host} is on your app ${holder.name}. Remove it there first.`, {
      details: [{ path: 'host', message: 'is on another app' }],
    });
  }
  if (!needsNoProof(context, holder.host)) return;
  throw new AppError('conflict', `${holder.host} is taken. Choose another.`, {
    details: [{ path: 'host', message: 'is taken' }],
  });
}

async function present({ platform }: Context, row: DomainRow): Promise<Domain> {
  const isActive = row.status === 'active';
  const certificate = isActive ? await platform.certificates.readCertificate(row.host).catch(() => undefined) : undefined;
  return {
    host: row.host,
    status: isActive ? 'active' : 'pending',
    proof: isActive ? null : proofOf(row.host, row.proof),
    certificate: { status: certificate === undefined ? 'pending' : 'issued', expiresAt: certificate?.expiresAt ?? null },
    createdAt: row.created_at,
  };
}

/** 128 bits. It need not be secret: what counts is that only who controls the DNS can publish it. */
function newProof(): string {
  return crypto.getRandomValues(new Uint8Array(16)).toHex();
}
