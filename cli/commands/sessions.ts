import { defineCommand } from '#cli/command-line/command.ts';
import type { Context } from '#cli/context/context.ts';
import { CliError, exitCodes, usageError } from '#cli/errors/cli-error.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { table } from '#cli/output/table.ts';
import { withoutLogin } from '#cli/session/stored-login.ts';
import { type Api, answerOf, succeeded } from '#shared/api-client/client.ts';
import { eachItem, firstItems } from '#shared/api-client/pages.ts';

function listSessions(api: Api) {
  return firstItems(eachItem((query) => answerOf(api.GET('/v1/auth/sessions', { params: { query } }))));
}

export const sessions = defineCommand({
  name: 'sessions',
  aliases: ['sessions:list'],
  group: 'Account',
  summary: 'list where you are logged in',
  args: {},
  flags: {},
  async run(context) {
    const found = await listSessions(await context.api());
    const now = context.now();
    const rows = found.map((session) => [
      session.source === '' ? 'unknown' : session.source,
      oneLine(session.client) || 'unknown client',
      `logged in ${relativeTime(session.created_at, now)}`,
      session.current ? 'this session' : `used ${relativeTime(session.last_used_at, now)}`,
      session.id,
    ]);
    context.print(table(rows), found);
  },
});

export const sessionsEnd = defineCommand({
  name: 'sessions:end',
  group: 'Account',
  summary: 'end a session, or log out everywhere',
  args: { session: { kind: 'optional', summary: 'id, from `paas sessions`' } },
  flags: {
    all: { kind: 'boolean', summary: 'end all sessions, this one too' },
    others: { kind: 'boolean', summary: 'end all sessions but this one' },
    keys: { kind: 'boolean', summary: 'delete all of your SSH keys, too' },
    tokens: { kind: 'boolean', summary: 'revoke all of your API tokens, too' },
  },
  details: [
    'A session that has ended is refused at once. SSH keys and API tokens work on, unless you use --keys and --tokens.',
    'If somebody else may know your password, change it with `paas account:password`: that ends all other sessions, too.',
  ],
  examples: ['paas sessions:end 4f6f1b7e-5d0c-4a43-9c8e-0d3a1f5b2c77', 'paas sessions:end --all --keys --tokens'],
  async run(context, { args, flags }) {
    if ([args.session !== undefined, flags.all, flags.others].filter(Boolean).length !== 1)
      throw usageError('Which session?', 'Use an id from `paas sessions`, or --others, or --all.');
    if (args.session !== undefined) {
      if (flags.keys || flags.tokens)
        throw usageError('--keys and --tokens need --all or --others.', 'See `paas help sessions:end`.');
      return endOne(context, args.session);
    }
    const query = {
      which: flags.all ? ('all' as const) : ('others' as const),
      ssh_keys: flags.keys ? ('true' as const) : ('false' as const),
      api_tokens: flags.tokens ? ('true' as const) : ('false' as const),
    };
    const api = await context.api();
    const { data } = await context.showProgress(
      'Ending sessions',
      answerOf(api.DELETE('/v1/auth/sessions', { params: { query } })),
      (ended) => `${ended.data.sessions} ended`,
    );
    if (flags.keys) context.report(`${data.ssh_keys} SSH keys were deleted.`);
    if (flags.tokens) context.report(`${data.api_tokens} API tokens were revoked.`);
    if (flags.all) await forgetLogin(context);
    context.print('', data);
  },
});

async function endOne(context: Context, id: string): Promise<void> {
  const api = await context.api();
  const session = (await listSessions(api)).find((each) => each.id === id);
  if (session === undefined)
    throw new CliError('You have no such session.', { exitCode: exitCodes.notFound, hint: 'List them with `paas sessions`.' });
  const path = { session_id: session.id };
  await context.showProgress('Ending the session', succeeded(api.DELETE('/v1/auth/sessions/{session_id}', { params: { path } })));
  if (session.current) await forgetLogin(context);
  context.print('', session);
}

async function forgetLogin(context: Context): Promise<void> {
  const host = await context.host();
  await context.credentials.update((credentials) => withoutLogin(credentials, host));
  context.report(`You are logged out at ${host}.`);
}
