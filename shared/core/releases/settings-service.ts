import { requireApp, requireAppToChange } from '#shared/core/apps/app-access.ts';
import { enqueueEnsureWorkload } from '#shared/core/apps/app-jobs.ts';
import { lockApp } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import { createRelease } from '#shared/core/releases/release-creation.ts';
import { readBaseRelease } from '#shared/core/releases/releases-store.ts';
import {
  type AppSettings,
  checkSettings,
  noSettings,
  type SettingChanges,
  type Settings,
} from '#shared/core/releases/settings.ts';
import { readSettings, writeSettings } from '#shared/core/releases/settings-store.ts';
import { notFound } from '#shared/errors.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

/** How the changed settings are named in the descriptions of releases. */
const names: Record<keyof AppSettings, string> = {
  healthPath: 'health path',
  healthTimeoutSeconds: 'health time-out',
  bootTimeoutSeconds: 'boot time-out',
  sessionAffinity: 'session affinity',
  directory: 'directory',
  clientVariables: 'variables of clients',
};
const settingNames = Object.keys(noSettings) as (keyof AppSettings)[];

/** Apps' settings. */
export function createSettings(context: Context): Settings {
  const { db } = context;
  return {
    async readSettings(caller, app) {
      return readSettings(db, (await requireApp(context, caller, app)).row);
    },

    async changeSettings(caller, app, changes) {
      const { principal, row } = await requireAppToChange(context, caller, app);
      const checked = withoutSlashes(changes);
      checkSettings(checked);
      return db.transaction().execute(async (trx) => {
        const locked = await lockApp(trx, row.id);
        if (locked === undefined || locked.deleted_at !== null) throw notFound('app');
        const before = await readSettings(trx, locked);
        await writeSettings(trx, row.id, omitUndefined(checked));
        const after = await readSettings(trx, locked);
        const changed = settingNames.filter((name) => before[name] !== after[name]);
        if (changed.includes('sessionAffinity')) await enqueueEnsureWorkload(context, trx, row.id);
        const ofInstances = changed.filter((name) => name !== 'sessionAffinity' && name !== 'directory');
        const base = ofInstances.length === 0 ? undefined : await readBaseRelease(trx, row.id);
        if (base !== undefined) {
          const describe = (name: keyof AppSettings): string => `${after[name] === null ? 'Reset' : 'Set'} ${names[name]}`;
          await createRelease(context, trx, locked, {
            kind: 'config',
            image: base,
            description: ofInstances.map(describe).join('; '),
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

/** A folder is written in several ways; '.' is all of the source. */
function withoutSlashes(changes: SettingChanges): SettingChanges {
  if (typeof changes.directory !== 'string') return changes;
  const directory = changes.directory.replace(/^(?:\.\/)+/, '').replace(/\/+$/, '');
  return { ...changes, directory: directory === '.' ? null : directory };
}
