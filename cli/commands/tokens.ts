import { defineCommand } from '#cli/command-line/command.ts';
import { CliError, exitCodes, usageError } from '#cli/errors/cli-error.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { table } from '#cli/output/table.ts';
import { type Api, answerOf, succeeded } from '#shared/api-client/client.ts';
import { eachItem, firstItems } from '#shared/api-client/pages.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

const scopes = ['read', 'deploy', 'full'] as const;

function listTokens(api: Api) {
  return firstItems(eachItem((query) => answerOf(api.GET('/v1/auth/tokens', { params: { query } }))));
}

export const tokens = defineCommand({
  name: 'tokens',
  aliases: ['tokens:list'],
  group: 'Account',
  summary: 'list your API tokens',
  args: {},
  flags: {},
  async run(context) {
    const found = await listTokens(await context.api());
    if (found.length === 0) context.report('You have no API tokens. Create one with `paas tokens:create NAME`.');
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
  summary: 'create an API token, for example for CI',
  args: { name: { kind: 'required', summary: 'name of the token' } },
  flags: {
    scope: { kind: 'string', short: 's', value: 'SCOPE', summary: 'scope: read, deploy or full (default: deploy)' },
    days: { kind: 'integer', value: 'N', summary: 'days until it expires (default: never)' },
  },
  details: [
    'read has the permissions of a viewer, deploy those of a developer, full yours. No token can give access to other people.',
    'The token is printed once. To use it, set PAAS_TOKEN.',
  ],
  examples: ['paas tokens:create ci --days 90', 'PAAS_TOKEN=$(paas tokens:create ci) paas builds:create -a hello'],
  async run(context, { args, flags }) {
    const scope = scopes.find((each) => each === (flags.scope ?? 'deploy'));
    if (scope === undefined) throw usageError('Unknown scope.', `Scopes are ${scopes.join(', ')}.`);
    const body = omitUndefined({ name: args.name, scope, expires_in_days: flags.days });
    const { data } = await answerOf((await context.api()).POST('/v1/auth/tokens', { body }));
    context.report('Store the token now: it is not shown again.');
    context.print(`${data.token}\n`, data);
  },
});

export const tokensRevoke = defineCommand({
  name: 'tokens:revoke',
  group: 'Account',
  summary: 'revoke an API token',
  args: { token: { kind: 'required', summary: 'name or id, from `paas tokens`' } },
  flags: {},
  async run(context, { args }) {
    const api = await context.api();
    const found = (await listTokens(api)).filter((token) => [token.id, token.name].includes(args.token));
    const [token] = found;
    if (token === undefined) {
      throw new CliError('You have no such API token.', { exitCode: exitCodes.notFound, hint: 'List them with `paas tokens`.' });
    }
    if (found.length > 1) {
      throw new CliError(`${found.length} of your API tokens have that name.`, {
        exitCode: exitCodes.conflict,
        hint: 'Use the id.',
      });
    }
    await context.showProgress(
      `Revoking ${oneLine(token.name)}`,
      succeeded(api.DELETE('/v1/auth/tokens/{token_id}', { params: { path: { token_id: token.id } } })),
    );
    context.print('', token);
  },
});
