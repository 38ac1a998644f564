import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import type { AppSelection, Context } from '#cli/context/context.ts';
import { CliError, exitCodes, usageError } from '#cli/errors/cli-error.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { keyValues } from '#cli/output/table.ts';
import { eachRelease } from '#cli/queries/each-release.ts';
import { readStdin } from '#cli/terminal/prompt.ts';
import { answerOf } from '#shared/api-client/client.ts';
import { firstItems } from '#shared/api-client/pages.ts';

export const config = defineCommand({
  name: 'config',
  group: 'Config',
  summary: 'show the config variables of the app, with those of its add-ons',
  args: {},
  flags: { ...appFlags, shell: { kind: 'boolean', short: 's', summary: "print lines for a shell: NAME='value'" } },
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const data = await readAll(context, app);
    const pairs = Object.entries(data).sort(([one], [other]) => (one < other ? -1 : 1));
    if (pairs.length === 0) context.report(`${app} has no config variables. Set one with \`paas config:set NAME=value\`.`);
    const text = flags.shell
      ? pairs.map(([name, value]) => `${name}=${shellQuote(value)}\n`).join('')
      : keyValues(pairs.map(([name, value]) => [name, oneLine(value)]));
    context.print(text, data);
  },
});

export const configGet = defineCommand({
  name: 'config:get',
  group: 'Config',
  summary: 'print the value of a config variable',
  args: { name: { kind: 'required', summary: 'name of the variable' } },
  flags: appFlags,
  async run(context, { args, flags }) {
    const app = await context.appName(flags);
    const data = await readAll(context, app);
    const value = Object.hasOwn(data, args.name) ? data[args.name] : undefined;
    if (value === undefined) {
      throw new CliError(`${app} has no config variable ${args.name}.`, {
        exitCode: exitCodes.notFound,
        hint: 'List them with `paas config`.',
      });
    }
    context.print(`${value}\n`, value);
  },
});

export const configSet = defineCommand({
  name: 'config:set',
  group: 'Config',
  summary: 'set config variables and restart the app',
  args: { assignments: { kind: 'any', summary: 'NAME=value, one or more' } },
  flags: {
    ...appFlags,
    file: {
      kind: 'string',
      short: 'f',
      value: 'PATH',
      summary: 'read NAME=value lines from a file, or from standard input with -',
    },
  },
  details: ['Arguments stay in the history of your shell. Pass secrets in a file.'],
  examples: ['paas config:set LOG_LEVEL=debug WORKERS=2', 'paas config:set -f .env'],
  async run(context, { args, flags }) {
    const changes = { ...(await readAssignments(context, flags.file)), ...parseAssignments(args.assignments) };
    await changeConfig(context, flags, 'Setting', changes);
  },
});

export const configUnset = defineCommand({
  name: 'config:unset',
  aliases: ['config:remove'],
  group: 'Config',
  summary: 'remove config variables and restart the app',
  args: { names: { kind: 'many', summary: 'names of the variables' } },
  flags: appFlags,
  async run(context, { args, flags }) {
    await changeConfig(context, flags, 'Removing', Object.fromEntries(args.names.map((name) => [name, null])));
  },
});

/** Own variables and those of add-ons, as the processes of the app get them. */
async function readAll(context: Context, app: string): Promise<Record<string, string>> {
  const params = { path: { id: app }, query: { addons: 'true' as const } };
  return (await answerOf((await context.api()).GET('/v1/apps/{id}/config', { params }))).data;
}

async function changeConfig(
  context: Context,
  flags: AppSelection,
  verb: string,
  changes: Record<string, string | null>,
): Promise<void> {
  const names = Object.keys(changes);
  if (names.length === 0) throw usageError('No variables are given.', 'Example: paas config:set NAME=value, or -f .env');
  const app = await context.appName(flags);
  const api = await context.api();
  const apply = async () => {
    const { data } = await answerOf(api.PATCH('/v1/apps/{id}/config', { params: { path: { id: app } }, body: changes }));
    const [newest] = await firstItems(eachRelease(api, app), 1);
    return { data, version: newest?.kind === 'config' ? newest.version : undefined };
  };
  const { data } = await context.showProgress(`${verb} ${names.map(oneLine).join(', ')} on ${app}`, apply(), ({ version }) =>
    version === undefined ? 'done' : `done, v${version} is rolling out`,
  );
  context.print('', data);
}

/** Errors do not contain the argument: it may be a secret. */
function parseAssignments(assignments: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    assignments.map((assignment, index) => {
      const equals = assignment.indexOf('=');
      if (equals > 0) return [assignment.slice(0, equals), assignment.slice(equals + 1)];
      throw usageError(`Argument ${index + 1} does not have the form NAME=value.`, 'Example: paas config:set LOG_LEVEL=debug');
    }),
  );
}

async function readAssignments(context: Context, path: string | undefined): Promise<Record<string, string>> {
  if (path === undefined) return {};
  const text = path === '-' ? await readStdin(context.terminal) : await readText(resolve(context.terminal.cwd, path));
  return Object.fromEntries(
    Object.entries(parseEnv(text)).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new CliError(`Cannot read ${path}.`, { hint: 'Use the path of a file with NAME=value lines.', cause: error });
  }
}

function shellQuote(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}
