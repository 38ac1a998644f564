import { requireApp, requireAppToChange } from '#shared/core/apps/app-access.ts';
import type { Domain, Domains } from '#shared/core/apps/apps.ts';
import { type AppRow, lockApp } from '#shared/core/apps/apps-store.ts';
import {
  needsNoProof,
  proofOf,
  removeFromRoutes,
  scheduleVerification,
  verifyDomain,
} from '#shared/core/apps/domain-verification.ts';
import {
  countDomains,
  type DomainRow,
  deleteDomain,
  type HolderRow,
  insertDomain,
  listDomains,
  readDomain,
  readHolder,
} from '#shared/core/apps/domains-store.ts';
import { normalizeHost, parseHost } from '#shared/core/apps/host-name.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError, notFound } from '#shared/errors.ts';
import { limits } from '#shared/limits.ts';

/** The custom domains of apps. */
export function createDomains(context: Context): Domains {
  const { db } = context;
  return {
    async listDomains(caller, app) {
      const { row } = await requireApp(context, caller, app);
      return Promise.all((await listDomains(db, row.id)).map((domain) => toDomain(context, domain)));
    },

    async addDomain(caller, app, text) {
      const { row } = await requireAppToChange(context, caller, app);
      const host = parseHost(text, context.addresses);
      const added = await db.transaction().execute((trx) => addPending(context, trx, row, host));
      const isActive = await verifyDomain(context, row.id, host);
      if (!isActive) await scheduleVerification(context, db, row.id, host);
      const domain = await readDomain(db, row.id, host);
      if (domain === undefined) throw notFound('domain');
      return { domain: await toDomain(context, domain), added };
    },

    async removeDomain(caller, app, text) {
      const { row } = await requireAppToChange(context, caller, app);
      const host = normalizeHost(text) ?? '';
      await db.transaction().execute(async (trx) => {
        const domain = await readDomain(trx, row.id, host);
        if (domain === undefined || domain.status === 'removing') throw notFound('domain');
        if (domain.status === 'active') return removeFromRoutes(context, trx, row.id, host);
        await deleteDomain(trx, row.id, host);
      });
    },
  };
}

/** False when the app has the domain already. */
async function addPending(context: Context, trx: Db, app: AppRow, host: string): Promise<boolean> {
  const locked = await lockApp(trx, app.id);
  if (locked === undefined || locked.deleted_at !== null) throw notFound('app');
  const existing = await readDomain(trx, app.id, host);
  if (existing?.status === 'removing') throw new AppError('conflict', `${host} is being removed. Try again in a moment.`);
  if (existing !== undefined) return false;
  const holder = await readHolder(trx, host);
  if (holder !== undefined) refuseTaken(context, app, holder);
  const count = await countDomains(trx, app.id);
  if (count >= limits.app.domains) {
    throw new AppError('conflict', `${app.name} has ${count} domains, the most an app can have. Remove one first.`);
  }
  await insertDomain(trx, { app_id: app.id, host, status: 'pending', proof: newProof(), created_at: context.clock.now() });
  return true;
}

/** A host that a proof may bring to this app is not refused. */
function refuseTaken(context: Context, app: AppRow, holder: HolderRow): void {
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

async function toDomain({ platform }: Context, row: DomainRow): Promise<Domain> {
  const isActive = row.status === 'active';
  const certificate = isActive ? await platform.certificates.readCertificate(row.host).catch(() => undefined) : undefined;
  return {
    host: row.host,
    status: isActive ? 'active' : 'pending',
    proof: isActive ? null : proofOf(row.host, row.proof),
    certificate: {
      status: certificate?.status === 'issued' ? 'issued' : 'pending',
      expiresAt: certificate?.expiresAt ?? null,
    },
    createdAt: row.created_at,
  };
}

/** 128 bits. It is not secret: what matters is that only who controls the DNS can publish it. */
function newProof(): string {
  return crypto.getRandomValues(new Uint8Array(16)).toHex();
}
