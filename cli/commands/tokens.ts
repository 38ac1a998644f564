import { defineCommand } from '#cli/command-line/command.ts';
import { CliError, exitCodes, usageError } from '#cli/errors/cli-error.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { table } from '#cli/output/table.ts';
import { type Api, answerOf, succeeded } from '#shared/api-client/client.ts';
import { eachItem, firstItems } from '#shared/api-client/pages.ts';

const scopes = ['read', 'deploy', 'full'] as const;

function listTokens(api: Api) {
  return firstItems(eachItem((query) => answerOf(api.GET('/v1/auth/tokens', { params: { query } }))));
}

export const tokens = defineCommand({
  name: 'tokens',
  aliases: ['tokens:list'],
  group: 'Account',
  summary: 'your API tokens',
  args: {},
  flags: {},
  async run(context) {
    const found = await listTokens(await context.api());
    if (found.length === 0) context.talk('You have no API tokens here. Make one with `paas tokens:create NAME`.');
    const now = context.now();
    const rows = found.map((token) => [
      oneLine(token.name),
      token.scope,
      token.expires_at === null ? 'never expires' : `expires ${relativeTime(token.expires_at, now)}`,
      token.last_used_at === null ? 'never used' : `used ${relativeTime(token.last_used_at, now)}`,
      token.id,
    ]);
    context.print(table(rows), found);
  },
});

export const tokensCreate = defineCommand({
  name: 'tokens:create',
  group: 'Account',
  summary: 'make an API token, for CI; it is shown once',
  args: { name: { kind: 'required', summary: 'what to call it' } },
  flags: {
    scope: { kind: 'string', short: 's', value: 'SCOPE', summary: 'read, deploy or full (default: deploy)' },
    days: { kind: 'integer', value: 'N', summary: 'days until it expires (default: never)' },
  },
  details: [
    'read may look, deploy may push out builds and change config, full may do what you may. None of them can give access to others.',
    'Where it is used, set it as PAAS_TOKEN.',
  ],
  examples: ['paas tokens:create ci --days 90', 'PAAS_TOKEN=$(paas tokens:create ci) paas builds:create -a hello'],
  async run(context, { args, flags }) {
    const scope = scopes.find((each) => each === (flags.scope ?? 'deploy'));
    if (scope === undefined) throw usageError('There is no such scope.', `It is one of ${scopes.join(', ')}.`);
    const body = { name: args.name, scope, ...(flags.days === undefined ? {} : { expires_in_days: flags.days }) };
    const { data } = await answerOf((await context.api()).POST('/v1/auth/tokens', { body }));
    context.talk('Keep it safe: it is not shown again.');
    context.print(`${data.token}\n`, data);
  },
});

export const tokensRevoke = defineCommand({
  name: 'tokens:revoke',
  group: 'Account',
  summary: 'end an API token, at once',
  args: { token: { kind: 'required', summary: 'its name or id, as `paas tokens` lists them' } },
  flags: {},
  async run(context, { args }) {
    const api = await context.api();
    const found = (await listTokens(api)).filter((token) => [token.id, token.name].includes(args.token));
    const [token] = found;
    if (token === undefined) {
      throw new CliError('You have no such token.', { exitCode: exitCodes.notFound, hint: 'List them with `paas tokens`.' });
    }
    if (found.length > 1) {
      throw new CliError(`${found.length} of your tokens have that name.`, {
        exitCode: exitCodes.conflict,
        hint: 'Name it by its id.',
      });
    }
    await context.doing(
      `Revoking ${oneLine(token.name)}`,
      succeeded(api.DELETE('/v1/auth/tokens/{token_id}', { params: { path: { token_id: token.id } } })),
    );
    context.print('', token);
  },
});
