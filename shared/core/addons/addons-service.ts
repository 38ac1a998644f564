import { requireRole } from '#shared/core/accounts/authorization.ts';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { addonStatus, addonVariable, toPlan } from '#shared/core/addons/addon-plans.ts';
import { requireAddonQuota } from '#shared/core/addons/addon-quota.ts';
import { newAddonPassword, openAddonCredentials, sealAddonSecret } from '#shared/core/addons/addon-secrets.ts';
import type { Addon, AppAddons } from '#shared/core/addons/addons.ts';
import {
  type AddonChange,
  type AddonRow,
  changeAddonRow,
  insertAddon,
  listAddonRows,
  readAddonRow,
} from '#shared/core/addons/addons-store.ts';
import { requireApp, requireAppToChange } from '#shared/core/apps/app-access.ts';
import { enqueueEnsureAddon } from '#shared/core/apps/app-jobs.ts';
import { type AppRow, lockApp } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import { hasConfigVar } from '#shared/core/releases/config-store.ts';
import { createRelease } from '#shared/core/releases/release-creation.ts';
import { readBaseRelease } from '#shared/core/releases/releases-store.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError, notFound } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import { type AddonType, addonTypes } from '#shared/platform/addons.ts';

/** Apps' add-ons. The job `ensure-addon` makes the servers match the records. */
export function createAddons(context: Context): AppAddons {
  const { db, clock, platform } = context;

  async function present(row: AddonRow): Promise<Addon> {
    // The record stays `creating` until its servers have been brought to it.
    const status =
      row.status === 'creating' ? row.status : addonStatus(await platform.addons.readAddon(row.app_id, row.addon_type));
    return toAddon(row, status);
  }

  /** Runs `change` in a transaction with the app's lock, and writes the columns that it returns. */
  async function changeAddon(
    principal: Principal,
    app: AppRow,
    type: string,
    change: (trx: Db, locked: AppRow, row: AddonRow) => Promise<Omit<AddonChange, 'changed_by' | 'updated_at'>>,
  ): Promise<Addon> {
    const known = requireType(type);
    return db.transaction().execute(async (trx) => {
      const locked = await lockApp(trx, app.id);
      const row = await readAddonRow(trx, app.id, known);
      if (locked === undefined || row === undefined || row.removed_at !== null) throw notFound('add-on');
      const changes = await change(trx, locked, row);
      await changeAddonRow(trx, row, { ...changes, changed_by: principal.userId, updated_at: clock.now() });
      await enqueueEnsureAddon(context, trx, app.id, known);
      const after = await readAddonRow(trx, app.id, known);
      if (after === undefined) throw notFound('add-on');
      return toAddon(after, after.status);
    });
  }

  return {
    async listAddons(caller, app) {
      const { row } = await requireApp(context, caller, app);
      return Promise.all((await listAddonRows(db, row.id)).map(present));
    },

    async createAddon(caller, app, { type, plan: planName = 'free' }) {
      const { principal, row } = await requireAppToChange(context, caller, app);
      const plan = toPlan(planName);
      const problem = await platform.addons.findProblem(type);
      if (problem !== undefined) throw new AppError('conflict', problem);
      const password = await sealAddonSecret(context, row, { type, key: 'password', value: newAddonPassword() });
      const created = await db.transaction().execute(async (trx) => {
        const locked = await lockApp(trx, row.id);
        if (locked === undefined || locked.deleted_at !== null) throw notFound('app');
        const before = await readAddonRow(trx, row.id, type);
        if (before !== undefined) {
          if (before.removed_at !== null) throw beingRemoved(type);
          return false;
        }
        await refuseVariableSetByHand(trx, row.id, type);
        await requireAddonQuota(context, trx, row, { type, plan });
        const [changed_by, created_at] = [principal.userId, clock.now()];
        await insertAddon(trx, { app_id: row.id, addon_type: type, plan, password, changed_by, created_at });
        await enqueueEnsureAddon(context, trx, row.id, type);
        return true;
      });
      if (!created)
        return {
          addon: await changeAddon(principal, row, type, async (trx) => {
            await requireAddonQuota(context, trx, row, { type, plan });
            return { plan };
          }),
          created,
        };
      const made = await readAddonRow(db, row.id, type);
      if (made === undefined) throw notFound('add-on');
      return { addon: toAddon(made, 'creating'), created };
    },

    async rotatePassword(caller, app, type) {
      const { principal, row } = await requireAppToChange(context, caller, app);
      return changeAddon(principal, row, type, async (_trx, locked, { addon_type }) => ({
        password: await sealAddonSecret(context, locked, { type: addon_type, key: 'password', value: newAddonPassword() }),
      }));
    },

    async readCredentials(caller, app, type) {
      const { row } = await requireAppToChange(context, caller, app);
      const addon = await readAddonRow(db, row.id, requireType(type));
      if (addon === undefined || addon.removed_at !== null) throw notFound('add-on');
      const credentials = await openAddonCredentials(context, row.tenant_id, addon);
      if (credentials === undefined)
        throw new AppError('conflict', 'The add-on is still being created. Try again in a few seconds.');
      return credentials;
    },

    async deleteAddon(caller, app, type) {
      const { principal, row } = await requireApp(context, caller, app);
      requireRole(principal, 'admin');
      return changeAddon(principal, row, type, async (trx, locked, addon) => {
        const base = addon.credentials === null ? undefined : await readBaseRelease(trx, row.id);
        if (base !== undefined) {
          await createRelease(context, trx, locked, {
            kind: 'addon',
            image: base,
            description: `Detach ${addon.addon_type} (${addonVariable(addon.addon_type)})`,
            createdBy: principal.userId,
            buildId: null,
            refChanges: base.ref_changes,
          });
        }
        return { removed_at: clock.now() };
      });
    },
  };
}

function requireType(type: string): AddonType {
  const known = addonTypes.find((candidate) => candidate === type);
  if (known === undefined) throw notFound('add-on');
  return known;
}

function beingRemoved(type: AddonType): AppError {
  return new AppError('conflict', `The previous ${type} is still being removed. Try again in a few seconds.`);
}

async function refuseVariableSetByHand(trx: Db, appId: AppId, type: AddonType): Promise<void> {
  const name = addonVariable(type);
  if (!(await hasConfigVar(trx, appId, name))) return;
  throw new AppError(
    'conflict',
    `The app sets ${name}, which the add-on would set too. Unset it first: paas config:unset ${name}`,
  );
}

function toAddon(row: AddonRow, status: Addon['status']): Addon {
  return {
    appId: row.app_id,
    type: row.addon_type,
    plan: row.plan,
    status: row.removed_at === null ? status : 'deleting',
    configVar: addonVariable(row.addon_type),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
