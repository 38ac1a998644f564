import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import { type Context, checkRemoteName, defaultRemote } from '#cli/context/context.ts';
import { CliError, usageError } from '#cli/errors/cli-error.ts';
import { keyValues } from '#cli/output/table.ts';
import { readApp } from '#cli/queries/read-app.ts';
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
  },
  details: [
    'Enter the printed webhook at the git host. Each push there is then built and deployed. `git push paas` continues to work.',
  ],
  examples: ['paas git:source:set https://git.example.com/ada/hello.git', 'paas git:source:set URL --branch production'],
  async run(context, { args, flags }) {
    const app = await context.appName(flags);
    await changeSource(context, app, args.url, flags.branch);
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
    await changeSource(context, app, null, undefined);
    context.print('', { app });
  },
});

async function changeSource(context: Context, app: string, url: string | null, branch: string | undefined): Promise<void> {
  if (url === '') throw usageError('The URL is empty.', 'Example: paas git:source:set https://git.example.com/ada/hello.git');
  const body = omitUndefined({ url, branch });
  const call = (await context.api()).PUT('/v1/apps/{id}/git', { params: { path: { id: app } }, body });
  await context.showProgress(
    `Setting the git source of ${app}`,
    answerOf(call),
    ({ data }) => `${data.git_url ?? 'none'}, branch ${data.branch}`,
  );
}

async function printSource(context: Context, app: string): Promise<void> {
  const { data } = await answerOf((await context.api()).GET('/v1/apps/{id}/git', { params: { path: { id: app } } }));
  if (data.webhook === null)
    context.report('Webhooks are disabled. The operator of the platform enables them with PAAS_WEBHOOK_SECRET.');
  const pairs = [
    ['source', data.url ?? 'git push'],
    ['branch', data.branch],
    ['webhook', data.webhook?.url],
    ['secret', data.webhook?.secret],
    ['deploy key', data.deploy_key],
  ] as const;
  context.print(keyValues(pairs), data);
}
