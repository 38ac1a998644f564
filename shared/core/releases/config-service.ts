import { requireRole } from '#shared/core/accounts/authorization.ts';
import { requireApp, requireAppToChange } from '#shared/core/apps/app-access.ts';
import { lockApp } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import { createRelease } from '#shared/core/releases/release-creation.ts';
import type { Config } from '#shared/core/releases/releases.ts';
import { readBaseRelease } from '#shared/core/releases/releases-store.ts';
import { readEnvironment, readVariables, writeVariables } from '#shared/core/releases/variables.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError, notFound } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** The platform sets these for each process. */
const reservedNames = new Set(['PORT']);

/** Apps' variables. A change of one creates a release. */
export function createConfig(context: Context): Config {
  const { db } = context;
  return {
    async readConfig(caller, app, withAddons = false) {
      const { principal, row } = await requireApp(context, caller, app);
      requireRole(principal, 'developer');
      return withAddons ? readEnvironment(context, db, row.tenant_id, row.id) : readVariables(context, db, row.id);
    },

    async changeConfig(caller, app, changes) {
      const { principal, row } = await requireAppToChange(context, caller, app);
      checkChanges(changes);
      return db.transaction().execute(async (trx) => {
        const locked = await lockApp(trx, row.id);
        if (locked === undefined || locked.deleted_at !== null) throw notFound('app');
        await refuseAddonVariables(context, trx, row.id, changes);
        const before = await readVariables(context, trx, row.id);
        const after = applyChanges(before, changes);
        const changed = Object.keys(changes).filter((name) => before[name] !== after[name]);
        if (changed.length === 0) return after;
        await writeVariables(context, trx, row.id, after);
        const base = await readBaseRelease(trx, row.id);
        if (base !== undefined) {
          await createRelease(context, trx, locked, {
            kind: 'config',
            image: base,
            description: describe(changed, after),
            createdBy: principal.userId,
            buildId: null,
            refChanges: base.ref_changes,
          });
        }
        return after;
      });
    },
  };
}

async function refuseAddonVariables(
  { bindings }: Context,
  trx: Db,
  appId: AppId,
  changes: Readonly<Record<string, string | null>>,
): Promise<void> {
  for (const { addonType, name } of await bindings.listBoundVariables(trx, appId)) {
    if (!(name in changes)) continue;
    const owner = `belongs to the add-on ${addonType}`;
    throw new AppError('conflict', `${name} ${owner}. Remove that first: paas addons:destroy ${addonType}`, {
      details: [{ path: name, message: owner }],
    });
  }
}

function applyChanges(
  before: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const merged = Object.entries({ ...before, ...changes }).filter((entry): entry is [string, string] => entry[1] !== null);
  const after = Object.fromEntries(merged.toSorted(([one], [other]) => (one < other ? -1 : 1)));
  const bytes = new TextEncoder().encode(JSON.stringify(after)).length;
  if (bytes > limits.app.configBytes) {
    throw new AppError('validation_failed', `All variables together must be smaller than ${limits.app.configBytes / 1024} KiB.`);
  }
  return after;
}

function checkChanges(changes: Readonly<Record<string, string | null>>): void {
  const details = Object.entries(changes).flatMap(([name, value]) => {
    const message = !variableName.test(name)
      ? 'must be letters, digits and "_", and not start with a digit'
      : reservedNames.has(name)
        ? 'is set by the platform'
        : value?.includes('\0') === true
          ? 'must not hold a NUL character'
          : undefined;
    return message === undefined ? [] : [{ path: name, message }];
  });
  const [first] = details;
  if (first !== undefined) throw new AppError('validation_failed', `The variable ${first.path} ${first.message}.`, { details });
}

function describe(changed: readonly string[], after: Readonly<Record<string, string>>): string {
  const set = changed.filter((name) => Object.hasOwn(after, name));
  const unset = changed.filter((name) => !Object.hasOwn(after, name));
  return [set.length > 0 ? `Set ${set.join(', ')}` : '', unset.length > 0 ? `Unset ${unset.join(', ')}` : '']
    .filter(Boolean)
    .join('; ');
}
