import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import { type Context, checkRemoteName, defaultRemote } from '#cli/context/context.ts';
import { CliError, usageError } from '#cli/errors/cli-error.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { keyValues, table } from '#cli/output/table.ts';
import { readApp } from '#cli/queries/read-app.ts';
import { askSecret, readStdin } from '#cli/terminal/prompt.ts';
import { isInteractive } from '#cli/terminal/terminal.ts';
import { answerOf } from '#shared/api-client/client.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

export const gitRemote = defineCommand({
  name: 'git:remote',
  group: 'Apps',
  summary: 'add or change the git remote of an app',
  args: {},
  flags: {
    app: appFlags.app,
    remote: { ...appFlags.remote, summary: `name of the git remote (default: ${defaultRemote})` },
  },
  examples: ['paas git:remote -a hello', 'paas git:remote -a hello-staging -r staging'],
  async run(context, { flags }) {
    // Here --remote is the remote to set. It does not select the app.
    const app = await readApp(context, await context.appName({ app: flags.app, remote: undefined }));
    const remote = checkRemoteName(flags.remote ?? defaultRemote);
    if (!(await context.git.inRepository()))
      throw new CliError('There is no git repository here.', {
        hint: 'Change to your repository, or create one with `git init`.',
      });
    const present = await context.git.read(remote);
    if (present === undefined) await context.git.add(remote, app.push_url);
    else if (present !== app.push_url) await context.git.replace(remote, app.push_url);
    if (present !== undefined && present !== app.push_url) context.report(`Before, it pointed to ${present}.`);
    context.report(`The git remote "${remote}" points to ${app.name}.`);
    context.print(`${app.push_url}\n`, { remote, push_url: app.push_url, before: present ?? null });
  },
});

export const gitSource = defineCommand({
  name: 'git:source',
  group: 'Apps',
  summary: 'show the git source of the app, its webhook and its deploy key',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    await printSource(context, await context.appName(flags));
  },
});

export const gitSourceSet = defineCommand({
  name: 'git:source:set',
  group: 'Apps',
  summary: 'build the app from a repository on another git host',
  args: { url: { kind: 'required', summary: 'URL to clone: https://… or ssh://…' } },
  flags: {
    ...appFlags,
    branch: {
      kind: 'string',
      short: 'b',
      value: 'BRANCH',
      summary: "branch to deploy (default: the repository's default branch)",
    },
    token: {
      kind: 'boolean',
      summary: 'ask for a token of the git host, or read it from standard input, for a private repository',
    },
    'remove-token': { kind: 'boolean', summary: 'remove the token of the git host' },
  },
  details: [
    'Enter the printed webhook at the git host. Each push there is then built and deployed. `git push paas` continues to work.',
    'A private repository is read with a token of the git host (https), or with the printed deploy key (ssh). A token that may also write commit statuses lets the git host show how builds ended.',
  ],
  examples: [
    'paas git:source:set https://git.example.com/ada/hello.git',
    'paas git:source:set URL --branch production',
    'paas git:source:set URL --token < token.txt',
  ],
  async run(context, { args, flags }) {
    const app = await context.appName(flags);
    if (flags.token && flags['remove-token']) throw usageError('--token and --remove-token exclude each other.', 'Choose one.');
    const token = flags.token ? await readToken(context) : flags['remove-token'] ? null : undefined;
    await changeSource(context, app, { url: args.url, branch: flags.branch, token });
    await printSource(context, app);
  },
});

export const gitSourceRemove = defineCommand({
  name: 'git:source:remove',
  aliases: ['git:source:unset'],
  group: 'Apps',
  summary: 'remove the git source: build only from `git push paas`',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    await changeSource(context, app, { url: null });
    context.print('', { app });
  },
});

/** Never an argument: other users of the machine can read those. */
async function readToken({ terminal }: Context): Promise<string> {
  const token = isInteractive(terminal)
    ? await askSecret(terminal, 'Token', 'Pass it by standard input.')
    : await readStdin(terminal);
  if (token.trim() !== '') return token.trim();
  throw usageError('The token is empty.', 'Pass it by standard input: paas git:source:set URL --token < token.txt');
}

interface SourceChange {
  url: string | null;
  branch?: string | undefined;
  token?: string | null | undefined;
}

async function changeSource(context: Context, app: string, { url, branch, token }: SourceChange): Promise<void> {
  if (url === '') throw usageError('The URL is empty.', 'Example: paas git:source:set https://git.example.com/ada/hello.git');
  const body = omitUndefined({ url, branch, token });
  const call = (await context.api()).PUT('/v1/apps/{id}/git', { params: { path: { id: app } }, body });
  await context.showProgress(
    `Setting the git source of ${app}`,
    answerOf(call),
    ({ data }) => `${data.git_url ?? 'none'}, branch ${data.branch}`,
  );
}

/** Of those that the platform remembers. */
const shownDeliveries = 10;

async function printSource(context: Context, app: string): Promise<void> {
  const api = await context.api();
  const params = { path: { id: app } };
  const { data } = await answerOf(api.GET('/v1/apps/{id}/git', { params }));
  const { data: deliveries } = await answerOf(api.GET('/v1/apps/{id}/git/deliveries', { params }));
  if (data.webhook === null)
    context.report('Webhooks are disabled. The operator of the platform enables them with PAAS_WEBHOOK_SECRET.');
  const pairs = [
    ['source', data.url ?? 'git push'],
    ['branch', data.branch],
    ['webhook', data.webhook?.url],
    ['secret', data.webhook?.secret],
    ['content type', data.webhook?.content_type],
    ['events', data.webhook?.events.join(', ')],
    ['deploy key', data.deploy_key],
    ['token', data.has_token ? 'set' : undefined],
  ] as const;
  const last = deliveries
    .slice(0, shownDeliveries)
    .map((each) => [relativeTime(each.received_at, context.now()), each.provider, each.event, each.outcome, each.message]);
  const text = last.length === 0 ? '' : `\nLast deliveries:\n${table(last)}`;
  context.print(keyValues(pairs) + text, { ...data, deliveries });
}
