import type { Principal } from '#shared/core/accounts/principals.ts';
import { requireApp, requireAppToChange } from '#shared/core/apps/app-access.ts';
import { ensureAppEnvironment } from '#shared/core/apps/app-environment.ts';
import { enqueueEnsureWorkload, enqueueRestart } from '#shared/core/apps/app-jobs.ts';
import { type AppRow, lockApp, readAppById } from '#shared/core/apps/apps-store.ts';
import { deleteRemovedHosts, listActiveHosts, listRemovedHosts } from '#shared/core/apps/domains-store.ts';
import type { Context } from '#shared/core/context.ts';
import { setFormation } from '#shared/core/releases/formations-store.ts';
import { requireInstances } from '#shared/core/releases/instance-quota.ts';
import { countInstances } from '#shared/core/releases/instances-store.ts';
import { createRelease } from '#shared/core/releases/release-creation.ts';
import type { Processes, ProcessType } from '#shared/core/releases/releases.ts';
import { type ReleaseRow, readBaseRelease, readReleaseById } from '#shared/core/releases/releases-store.ts';
import { readQuantities, workloadSpec } from '#shared/core/releases/workload-spec.ts';
import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

/** What runs of apps, and how much. */
export function createProcesses(context: Context): Processes {
  const { db, clock } = context;
  return {
    async listProcesses(caller, app) {
      return describeProcesses(context, (await requireApp(context, caller, app)).row);
    },

    async scaleProcess(caller, app, type, quantity) {
      const { row } = await requireAppToChange(context, caller, app);
      const release = await currentRelease(context, row);
      if (release === undefined) throw nothingReleased(row);
      if (!Object.hasOwn(release.processes, type)) {
        throw new AppError(
          'validation_failed',
          `${row.name} has no process type ${type}. It has: ${Object.keys(release.processes).join(', ')}.`,
          {
            details: [{ path: 'type', message: 'is not in the Procfile' }],
          },
        );
      }
      if (!Number.isInteger(quantity) || quantity < 0 || quantity > limits.app.instancesPerType) {
        throw new AppError('validation_failed', `The quantity must be 0 to ${limits.app.instancesPerType}.`, {
          details: [{ path: 'quantity', message: `must be a whole number from 0 to ${limits.app.instancesPerType}` }],
        });
      }
      await db.transaction().execute(async (trx) => {
        await lockApp(trx, row.id);
        const { tenant_id: tenantId } = row;
        let used: number | undefined;
        await requireInstances(context, trx, tenantId, async () => {
          used ??= await countInstances(trx, tenantId);
          await setFormation(trx, row.id, type, quantity);
          return { used, wanted: await countInstances(trx, tenantId) };
        });
        await enqueueEnsureWorkload(context, trx, row.id);
      });
      const after = (await describeProcesses(context, row)).find((process) => process.type === type);
      return after ?? { type, command: release.processes[type] ?? '', quantity, instances: [] };
    },

    async restart(caller, app) {
      const { principal, row } = await requireAppToChange(context, caller, app);
      const release = (await currentRelease(context, row)) ?? (await tryAgain(context, principal, row));
      if (row.current_release_id !== null) await enqueueRestart(context, db, row.id);
      return { restartedAt: clock.now(), processes: Object.keys(release.processes) };
    },
  };
}

/** An app whose releases all failed: its newest one is released once more. */
async function tryAgain(context: Context, { userId }: Principal, app: AppRow): Promise<ReleaseRow> {
  return context.db.transaction().execute(async (trx) => {
    const locked = await lockApp(trx, app.id);
    const base = locked && (await readBaseRelease(trx, app.id));
    if (locked === undefined || base === undefined) throw nothingReleased(app);
    await createRelease(context, trx, locked, {
      kind: 'config',
      image: base,
      description: `Restart v${base.version}`,
      createdBy: userId,
      buildId: null,
      refChanges: base.ref_changes,
    });
    return base;
  });
}

function nothingReleased(app: AppRow): AppError {
  return new AppError('conflict', `${app.name} has no release yet. Deploy first: git push paas ${app.branch}`);
}

async function currentRelease({ db }: Context, app: AppRow): Promise<ReleaseRow | undefined> {
  return app.current_release_id === null ? undefined : readReleaseById(db, app.current_release_id);
}

async function describeProcesses(context: Context, app: AppRow): Promise<ProcessType[]> {
  const release = await currentRelease(context, app);
  if (release === undefined) return [];
  const quantities = await readQuantities(context, app.id, release.processes);
  const instances = await context.platform.workloads.readInstances(app.id);
  return Object.entries(release.processes).map(([type, command]) => ({
    type,
    command,
    quantity: quantities[type] ?? 0,
    instances: instances.filter((instance) => instance.type === type),
  }));
}

/** Makes what runs match the database: the current release, or nothing for a deleted app. */
export async function runEnsureWorkloadJob(context: Context, appId: AppId): Promise<void> {
  const app = await readAppById(context.db, appId);
  const release = app?.deleted_at === null ? await currentRelease(context, app) : undefined;
  const removedHosts = await listRemovedHosts(context.db, appId);
  const { workloads, certificates } = context.platform;
  if (app === undefined || release === undefined) await workloads.deleteWorkload(appId);
  else {
    await ensureAppEnvironment(context, app);
    await workloads.ensureWorkload(await workloadSpec(context, app, release));
  }
  if (app?.deleted_at === null)
    for (const host of await listActiveHosts(context.db, appId)) await certificates.ensureCertificate(host);
  for (const host of removedHosts) await certificates.deleteCertificate(host);
  await deleteRemovedHosts(context.db, appId, removedHosts);
}

/** Replaces the instances of an active app one by one. */
export async function runRestartJob(context: Context, appId: AppId): Promise<void> {
  const app = await readAppById(context.db, appId);
  if (app === undefined || app.deleted_at !== null) return;
  await context.platform.workloads.restartWorkload(appId);
}
