import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import type { AppSelection, Context } from '#cli/context/context.ts';
import { usageError } from '#cli/errors/cli-error.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { keyValues } from '#cli/output/table.ts';
import { eachRelease } from '#cli/queries/each-release.ts';
import { answerOf } from '#shared/api-client/client.ts';
import type { components } from '#shared/api-client/openapi-types.ts';
import { firstItems } from '#shared/api-client/pages.ts';

type Values = components['schemas']['Settings'];

interface Setting {
  field: keyof Values;
  /** What applies when it is not set. */
  default: string;
  parse(value: string): string | number | boolean;
  print(value: string | number | boolean): string;
}

const inSeconds = { parse: parseSeconds, print: (value: unknown) => `${String(value)} s` };

/** By the name that is typed. */
const settingsByName: Readonly<Record<string, Setting>> = {
  'health-path': {
    field: 'health_path',
    default: 'none: an instance is up when it accepts connections',
    parse: (value) => value,
    print: String,
  },
  'health-timeout': { field: 'health_timeout_seconds', default: '5 s', ...inSeconds },
  'boot-timeout': { field: 'boot_timeout_seconds', default: '60 s', ...inSeconds },
  'session-affinity': {
    field: 'session_affinity',
    default: 'on',
    parse: parseSwitch,
    print: (value) => (value === true ? 'on' : 'off'),
  },
  directory: {
    field: 'directory',
    default: 'all of the source',
    parse: (value) => value,
    print: String,
  },
  'client-variables': {
    field: 'client_variables',
    default: 'off',
    parse: parseSwitch,
    print: (value) => (value === true ? 'on' : 'off'),
  },
};
const allNames = Object.keys(settingsByName).join(', ');

export const settings = defineCommand({
  name: 'settings',
  group: 'Config',
  summary: 'show the health check, the boot time-out and other settings of the app',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const { data } = await answerOf((await context.api()).GET('/v1/apps/{id}/settings', { params: { path: { id: app } } }));
    const rows = Object.entries(settingsByName).map(([name, setting]): [string, string] => {
      const value = data[setting.field];
      return [name, value === null ? `${setting.default} (default)` : oneLine(setting.print(value))];
    });
    context.print(keyValues(rows), data);
  },
});

export const settingsSet = defineCommand({
  name: 'settings:set',
  group: 'Config',
  summary: 'change settings of the app',
  args: { assignments: { kind: 'many', summary: 'NAME=value, one or more' } },
  flags: appFlags,
  details: [
    'health-path=PATH       an instance gets traffic once it answers this path below 500',
    'health-timeout=SECONDS longest time for one answer of that path, 1 to 60',
    'boot-timeout=SECONDS   longest time from the start of an instance until it is up, 1 to 600',
    'directory=PATH         folder of the source that the app is built of, from the next build on',
    'client-variables=on    add-ons also set REDIS_URL, and PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE',
    'session-affinity=on    a visitor stays with one release and one instance; off: releases and instances take turns',
  ],
  examples: ['paas settings:set health-path=/healthz boot-timeout=120', 'paas settings:set session-affinity=off'],
  async run(context, { args, flags }) {
    const changes = Object.fromEntries(
      args.assignments.map((assignment) => {
        const equals = assignment.indexOf('=');
        if (equals < 1) throw usageError(`"${oneLine(assignment)}" does not have the form NAME=value.`, `Settings: ${allNames}`);
        const { field, parse } = findSetting(assignment.slice(0, equals));
        return [field, parse(assignment.slice(equals + 1))];
      }),
    );
    await change(context, flags, changes);
  },
});

export const settingsUnset = defineCommand({
  name: 'settings:unset',
  aliases: ['settings:reset'],
  group: 'Config',
  summary: 'reset settings of the app to their defaults',
  args: { names: { kind: 'many', summary: 'names of the settings' } },
  flags: appFlags,
  examples: ['paas settings:unset health-path'],
  async run(context, { args, flags }) {
    await change(context, flags, Object.fromEntries(args.names.map((name) => [findSetting(name).field, null])));
  },
});

async function change(context: Context, flags: AppSelection, changes: Partial<Values>): Promise<void> {
  const app = await context.appName(flags);
  const api = await context.api();
  const newestVersion = async (): Promise<number> => (await firstItems(eachRelease(api, app), 1))[0]?.version ?? 0;
  const apply = async () => {
    const before = await newestVersion();
    const { data } = await answerOf(api.PATCH('/v1/apps/{id}/settings', { params: { path: { id: app } }, body: changes }));
    const version = await newestVersion();
    return { data, version: version > before ? version : undefined };
  };
  const { data } = await context.showProgress(`Changing settings of ${app}`, apply(), ({ version }) =>
    version === undefined ? 'done' : `done, v${version} is rolling out`,
  );
  context.print('', data);
}

function findSetting(name: string): Setting {
  const setting = Object.hasOwn(settingsByName, name) ? settingsByName[name] : undefined;
  if (setting === undefined) throw usageError(`There is no setting "${oneLine(name)}".`, `Settings: ${allNames}`);
  return setting;
}

function parseSeconds(value: string): number {
  if (!/^\d{1,6}$/.test(value)) throw usageError('A time-out must be a whole number of seconds.', 'Example: boot-timeout=120');
  return Number(value);
}

function parseSwitch(value: string): boolean {
  if (value === 'on' || value === 'true') return true;
  if (value === 'off' || value === 'false') return false;
  throw usageError('This setting must be on or off.', 'Example: paas settings:set session-affinity=off');
}
