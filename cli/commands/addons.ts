import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import type { AppSelection, Context } from '#cli/context/context.ts';
import { CliError, exitCodes, usageError } from '#cli/errors/cli-error.ts';
import { type Style } from '#cli/output/paint.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { table } from '#cli/output/table.ts';
import { runInForeground } from '#cli/terminal/run-tool.ts';
import { answerOf } from '#shared/api-client/client.ts';

const statusStyles = {
  creating: 'yellow',
  Creating: 'yellow',
  Ready: 'green',
  Failed: 'red',
} as const satisfies Record<string, Style>;

/** What people call them elsewhere. */
const types = {
  kvstore: 'kvstore',
  redis: 'kvstore',
  valkey: 'kvstore',
  database: 'database',
  postgres: 'database',
  postgresql: 'database',
} as const;
type AddonType = (typeof types)[keyof typeof types];

export const addons = defineCommand({
  name: 'addons',
  group: 'Add-ons',
  summary: 'the databases and key-value stores of the app',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const { data } = await answerOf((await context.api()).GET('/v1/apps/{id}/addons', { params: { path: { id: app } } }));
    if (data.length === 0) context.talk(`${app} has no add-ons. Add one with \`paas addons:create kvstore\` or \`database\`.`);
    const rows = data.map((addon) => [
      `${addon.addon_type}:${addon.plan}`,
      context.paint(statusStyles[addon.status], addon.status),
      addon.config_var,
      relativeTime(addon.created_at, context.now()),
    ]);
    context.print(table(rows), data);
  },
});

export const addonsCreate = defineCommand({
  name: 'addons:create',
  aliases: ['addons:add'],
  group: 'Add-ons',
  summary: 'add a database or a key-value store, or change its plan',
  args: { addon: { kind: 'required', summary: 'kvstore or database, with a plan as in kvstore:standard' } },
  flags: appFlags,
  details: ['Plans are free, standard and pro. The app gets the address in KVSTORE_URL or DATABASE_URL, by a release.'],
  examples: ['paas addons:create kvstore:standard', 'paas addons:create database'],
  async run(context, { args, flags }) {
    const [name = '', plan = 'free'] = args.addon.split(':');
    const type = requireType(name);
    const app = await context.appName(flags);
    const call = (await context.api()).POST('/v1/apps/{id}/addons', { params: { path: { id: app } }, body: { type, plan } });
    const { data } = await context.doing(
      `Adding ${type} to ${app}`,
      answerOf(call),
      ({ data: addon }) => `begun (${addon.plan}); ${app} gets ${addon.config_var}`,
    );
    context.print('', data);
  },
});

export const addonsRotate = defineCommand({
  name: 'addons:rotate',
  group: 'Add-ons',
  summary: 'give an add-on a new password, and the app with it',
  args: { addon: { kind: 'required', summary: 'kvstore or database' } },
  flags: appFlags,
  async run(context, { args, flags }) {
    const type = requireType(args.addon);
    const app = await context.appName(flags);
    const path = { id: app, addon_type: type };
    const call = (await context.api()).POST('/v1/apps/{id}/addons/{addon_type}/rotate', { params: { path } });
    const { data } = await context.doing(`Changing the password of ${type} of ${app}`, answerOf(call), () => 'begun');
    context.print('', data);
  },
});

export const addonsDestroy = defineCommand({
  name: 'addons:destroy',
  aliases: ['addons:remove'],
  group: 'Add-ons',
  summary: 'remove an add-on and all its data, for good',
  args: { addon: { kind: 'required', summary: 'kvstore or database' } },
  flags: { ...appFlags, confirm: { kind: 'string', short: 'c', value: 'NAME', summary: "the app's name, to be sure" } },
  examples: ['paas addons:destroy kvstore -c hello'],
  async run(context, { args, flags }) {
    const type = requireType(args.addon);
    const app = await context.appName(flags);
    if (flags.confirm !== app) {
      throw usageError(
        `This deletes all data of ${type} of ${app}, for good.`,
        `To be sure: paas addons:destroy ${type} -a ${app} -c ${app}`,
      );
    }
    const path = { id: app, addon_type: type };
    const call = (await context.api()).DELETE('/v1/apps/{id}/addons/{addon_type}', { params: { path } });
    const { data } = await context.doing(`Removing ${type} of ${app}`, answerOf(call), () => 'begun');
    context.print('', data);
  },
});

export const pgPsql = defineCommand({
  name: 'pg:psql',
  aliases: ['psql'],
  group: 'Add-ons',
  summary: "talk to the app's database by psql",
  args: { options: { kind: 'any', summary: 'for psql, behind --' } },
  flags: appFlags,
  examples: ['paas pg:psql', "paas pg:psql -- -c 'select 1'"],
  async run(context, { args, flags }) {
    const uri = new URL((await readCredentials(context, flags, 'database')).uri);
    const env = {
      PGHOST: uri.hostname,
      PGPORT: uri.port,
      PGUSER: uri.username,
      PGPASSWORD: uri.password,
      PGDATABASE: uri.pathname.slice(1),
    };
    return runClient(context, ['psql'], args.options, env, 'apt-get install -y postgresql-client');
  },
});

export const kvCli = defineCommand({
  name: 'kv:cli',
  aliases: ['redis:cli'],
  group: 'Add-ons',
  summary: "talk to the app's key-value store by redis-cli or valkey-cli",
  args: { options: { kind: 'any', summary: 'a command for it' } },
  flags: appFlags,
  examples: ['paas kv:cli', 'paas kv:cli info memory'],
  async run(context, { args, flags }) {
    const { host, port, password } = await readCredentials(context, flags, 'kvstore');
    const env = { REDISCLI_AUTH: password, VALKEYCLI_AUTH: password };
    const options = ['-h', host, '-p', String(port), ...args.options];
    return runClient(context, ['valkey-cli', 'redis-cli'], options, env, 'apt-get install -y redis-tools');
  },
});

function requireType(name: string): AddonType {
  if (Object.hasOwn(types, name)) return types[name as keyof typeof types];
  throw usageError('There is no such add-on.', 'There are: kvstore and database. As in: paas addons:create kvstore:standard');
}

async function readCredentials(context: Context, flags: AppSelection, type: AddonType) {
  const app = await context.appName(flags);
  const path = { id: app, addon_type: type };
  const { data } = await answerOf(
    (await context.api()).GET('/v1/apps/{id}/addons/{addon_type}/credentials', { params: { path } }),
  );
  const platform = new URL(await context.host()).hostname;
  if (isLoopback(data.host) && !isLoopback(platform)) {
    throw new CliError(`The add-ons of ${platform} are only reached from that machine itself.`, {
      hint: 'Log in to it, and run this there.',
    });
  }
  return data;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host.startsWith('127.');
}

/** The password goes by the environment: arguments are seen by everybody on a machine. */
async function runClient(
  context: Context,
  programs: readonly string[],
  args: readonly string[],
  secrets: Readonly<Record<string, string>>,
  install: string,
): Promise<0 | 1> {
  for (const program of programs) {
    const end = await runInForeground(program, args, { ...context.terminal.env, ...secrets });
    if (end !== 'not installed') return end === 0 ? exitCodes.ok : exitCodes.failed;
  }
  throw new CliError(`${programs.join(' or ')} is not on this machine.`, { hint: `Install it, as with: ${install}` });
}
