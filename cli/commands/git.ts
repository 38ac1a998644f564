import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import { readApp } from '#cli/commands/apps.ts';
import { type Context, checkRemoteName, defaultRemote } from '#cli/context/context.ts';
import { CliError, usageError } from '#cli/errors/cli-error.ts';
import { keyValues } from '#cli/output/table.ts';
import { answerOf } from '#shared/api-client/client.ts';

export const gitRemote = defineCommand({
  name: 'git:remote',
  group: 'Apps',
  summary: "point your repository's git remote to an app",
  args: {},
  flags: {
    app: appFlags.app,
    remote: { ...appFlags.remote, summary: `what to call the git remote (default: ${defaultRemote})` },
  },
  examples: ['paas git:remote -a hello', 'paas git:remote -a hello-staging -r staging'],
  async run(context, { flags }) {
    // Here --remote is what to set, not where to look.
    const app = await readApp(context, await context.appName({ app: flags.app, remote: undefined }));
    const remote = checkRemoteName(flags.remote ?? defaultRemote);
    if (!(await context.git.inRepository()))
      throw new CliError('There is no git repository here.', { hint: 'Make one with `git init`, or go into yours.' });
    const present = await context.git.read(remote);
    if (present === undefined) await context.git.add(remote, app.push_url);
    else if (present !== app.push_url) await context.git.replace(remote, app.push_url);
    if (present !== undefined && present !== app.push_url) context.talk(`It pointed to ${present} before.`);
    context.talk(`The git remote "${remote}" points to ${app.name}.`);
    context.print(`${app.push_url}\n`, { remote, push_url: app.push_url, before: present ?? null });
  },
});

export const gitSource = defineCommand({
  name: 'git:source',
  group: 'Apps',
  summary: 'where a git host elsewhere has the source, and what to enter there',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    await printSource(context, await context.appName(flags));
  },
});

export const gitSourceSet = defineCommand({
  name: 'git:source:set',
  group: 'Apps',
  summary: 'build the app from a git host elsewhere',
  args: { url: { kind: 'required', summary: 'https://… or ssh://… as you would clone it' } },
  flags: {
    ...appFlags,
    branch: { kind: 'string', short: 'b', value: 'BRANCH', summary: 'the branch that is deployed (default: as it is)' },
  },
  details: ['`git push paas` goes on to work. Enter the webhook at the git host, and each push there builds and deploys too.'],
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
  summary: 'build the app from what is pushed here only',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    await changeSource(context, app, null, undefined);
    context.print('', { app });
  },
});

async function changeSource(context: Context, app: string, url: string | null, branch: string | undefined): Promise<void> {
  if (url === '') throw usageError('An address is missing.', 'As in: paas git:source:set https://git.example.com/ada/hello.git');
  const body = { url, ...(branch === undefined ? {} : { branch }) };
  const call = (await context.api()).PUT('/v1/apps/{id}/git', { params: { path: { id: app } }, body });
  await context.doing(
    `Setting the git source of ${app}`,
    answerOf(call),
    ({ data }) => `${data.git_url ?? 'none'}, branch ${data.branch}`,
  );
}

async function printSource(context: Context, app: string): Promise<void> {
  const { data } = await answerOf((await context.api()).GET('/v1/apps/{id}/git', { params: { path: { id: app } } }));
  if (data.webhook === null)
    context.talk('Webhooks are off here: whoever runs the platform turns them on with PAAS_WEBHOOK_SECRET.');
  const pairs = [
    ['source', data.url ?? 'what is pushed here'],
    ['branch', data.branch],
    ['webhook', data.webhook?.url],
    ['secret', data.webhook?.secret],
    ['deploy key', data.deploy_key],
  ] as const;
  context.print(keyValues(pairs), data);
}
