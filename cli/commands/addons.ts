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
  deleting: 'yellow',
  Creating: 'yellow',
  Ready: 'green',
  Failed: 'red',
} as const satisfies Record<string, Style>;

/** Names of add-on types, with those of other platforms. */
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
  summary: 'list the add-ons of the app',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const { data } = await answerOf((await context.api()).GET('/v1/apps/{id}/addons', { params: { path: { id: app } } }));
    if (data.length === 0) context.report(`${app} has no add-ons. Add one with \`paas addons:create kvstore\` or \`database\`.`);
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
  summary: 'add a database or key-value store, or change its plan',
  args: { addon: { kind: 'required', summary: 'kvstore or database, optionally with a plan: kvstore:standard' } },
  flags: appFlags,
  details: ['Plans: free (default), standard, pro. A release gives the app the URL in KVSTORE_URL or DATABASE_URL.'],
  examples: ['paas addons:create kvstore:standard', 'paas addons:create database'],
  async run(context, { args, flags }) {
    const [name = '', plan = 'free'] = args.addon.split(':');
    const type = requireType(name);
    const app = await context.appName(flags);
    const call = (await context.api()).POST('/v1/apps/{id}/addons', { params: { path: { id: app } }, body: { type, plan } });
    const { data } = await context.showProgress(
      `Adding ${type} to ${app}`,
      answerOf(call),
      ({ data: addon }) => `started (${addon.plan}), the URL will be in ${addon.config_var}`,
    );
    context.print('', data);
  },
});

export const addonsRotate = defineCommand({
  name: 'addons:rotate',
  group: 'Add-ons',
  summary: "rotate an add-on's password and update the app",
  args: { addon: { kind: 'required', summary: 'kvstore or database' } },
  flags: appFlags,
  async run(context, { args, flags }) {
    const type = requireType(args.addon);
    const app = await context.appName(flags);
    const path = { id: app, addon_type: type };
    const call = (await context.api()).POST('/v1/apps/{id}/addons/{addon_type}/rotate', { params: { path } });
    const { data } = await context.showProgress(`Rotating the password of ${type} of ${app}`, answerOf(call), () => 'started');
    context.print('', data);
  },
});

export const addonsDestroy = defineCommand({
  name: 'addons:destroy',
  aliases: ['addons:remove'],
  group: 'Add-ons',
  summary: 'delete an add-on and its data permanently',
  args: { addon: { kind: 'required', summary: 'kvstore or database' } },
  flags: { ...appFlags, confirm: { kind: 'string', short: 'c', value: 'NAME', summary: 'name of the app, as confirmation' } },
  examples: ['paas addons:destroy kvstore -c hello'],
  async run(context, { args, flags }) {
    const type = requireType(args.addon);
    const app = await context.appName(flags);
    if (flags.confirm !== app) {
      throw usageError(
        `This deletes ${type} of ${app} and all its data permanently.`,
        `To confirm: paas addons:destroy ${type} -a ${app} -c ${app}`,
      );
    }
    const path = { id: app, addon_type: type };
    const call = (await context.api()).DELETE('/v1/apps/{id}/addons/{addon_type}', { params: { path } });
    const { data } = await context.showProgress(`Deleting ${type} of ${app}`, answerOf(call), () => 'started');
    context.print('', data);
  },
});

export const pgPsql = defineCommand({
  name: 'pg:psql',
  aliases: ['psql'],
  group: 'Add-ons',
  summary: 'open a psql session to the database of the app',
  args: { options: { kind: 'any', summary: 'options for psql, after --' } },
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
  summary: 'open a valkey-cli or redis-cli session to the key-value store of the app',
  args: { options: { kind: 'any', summary: 'a command to run there' } },
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
  throw usageError('Unknown add-on.', 'Add-ons are kvstore and database. Example: paas addons:create kvstore:standard');
}

async function readCredentials(context: Context, flags: AppSelection, type: AddonType) {
  const app = await context.appName(flags);
  const path = { id: app, addon_type: type };
  const { data } = await answerOf(
    (await context.api()).GET('/v1/apps/{id}/addons/{addon_type}/credentials', { params: { path } }),
  );
  const platform = new URL(await context.host()).hostname;
  if (isLoopback(data.host) && !isLoopback(platform)) {
    throw new CliError(`The add-ons of ${platform} can be reached from that machine only.`, {
      hint: 'Log in to that machine and run the command there.',
    });
  }
  return data;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host.startsWith('127.');
}

/** Runs the first of `programs` that is installed. Secrets are in its environment: every user of a machine can see arguments. */
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
  throw new CliError(`${programs.join(' or ')} is not installed.`, { hint: `Install it: ${install}` });
}
