import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import { type Context, checkRemoteName, defaultRemote } from '#cli/context/context.ts';
import { CliError, exitCodes, usageError } from '#cli/errors/cli-error.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { keyValues, table } from '#cli/output/table.ts';
import { ask } from '#cli/terminal/prompt.ts';
import { runDetached } from '#cli/terminal/run-tool.ts';
import { answerOf } from '#shared/api-client/client.ts';
import { eachItem, firstItems } from '#shared/api-client/pages.ts';

export const create = defineCommand({
  name: 'create',
  aliases: ['apps:create'],
  group: 'Apps',
  summary: 'make an app and add it to your repository as a git remote',
  args: { name: { kind: 'optional', summary: 'part of its address (default: one is made up)' } },
  flags: {
    remote: { kind: 'string', short: 'r', value: 'NAME', summary: `what to call the git remote (default: ${defaultRemote})` },
    'no-remote': { kind: 'boolean', summary: 'add no git remote' },
    branch: { kind: 'string', short: 'b', value: 'NAME', summary: 'the branch that is deployed (default: main)' },
  },
  examples: ['paas create hello', 'paas create hello-staging -r staging'],
  async run(context, { args, flags }) {
    const api = await context.api();
    const remote = checkRemoteName(flags.remote ?? defaultRemote);
    const wantsRemote = !flags['no-remote'] && (await context.git.inRepository());
    const present = wantsRemote ? await context.git.read(remote) : undefined;
    if (present !== undefined) {
      throw new CliError(`The git remote "${remote}" already points to ${present}, so nothing was made.`, {
        exitCode: exitCodes.conflict,
        hint: 'Pick another with -r NAME, or add none with --no-remote.',
      });
    }
    const body = {
      ...(args.name === undefined ? {} : { name: args.name }),
      ...(flags.branch === undefined ? {} : { branch: flags.branch }),
    };
    const { data: app } = await context.doing(
      `Creating ${args.name ?? 'an app'}`,
      answerOf(api.POST('/v1/apps', { body })),
      (made) => (args.name === undefined ? made.data.name : 'done'),
    );
    context.print(`${app.web_url} | ${app.push_url}\n`, app);
    if (wantsRemote) {
      await context.git.add(remote, app.push_url);
      context.talk(`Added the git remote "${remote}". Next: git push ${remote} ${app.branch}`);
    } else if (!flags['no-remote']) {
      context.talk(`There is no git repository here. In one, run: paas git:remote -a ${app.name}`);
    }
  },
});

export const apps = defineCommand({
  name: 'apps',
  aliases: ['apps:list', 'list'],
  group: 'Apps',
  summary: 'your apps',
  args: {},
  flags: { deleted: { kind: 'boolean', summary: 'those that can be restored instead' } },
  async run(context, { flags }) {
    const api = await context.api();
    const found = await firstItems(
      eachItem((page) =>
        answerOf(api.GET('/v1/apps', { params: { query: { ...page, ...(flags.deleted ? { deleted: 'true' as const } : {}) } } })),
      ),
    );
    if (found.length === 0)
      context.talk(flags.deleted ? 'There is no app to restore.' : 'You have no apps yet. Make one with `paas create`.');
    const rows = found.map((app) => [
      app.name,
      app.current_release === null ? 'nothing released' : `v${app.current_release.version}`,
      app.restorable_until === null ? app.web_url : `restorable until ${app.restorable_until.slice(0, 10)}`,
      `changed ${relativeTime(app.updated_at, context.now())}`,
    ]);
    context.print(table(rows), found);
  },
});

export const info = defineCommand({
  name: 'info',
  aliases: ['apps:info'],
  group: 'Apps',
  summary: 'what there is to know about an app',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await readApp(context, await context.appName(flags));
    context.print(
      keyValues([
        ['Name', app.name],
        ['Web', app.web_url],
        ['Secure', app.subdomain === app.web_url ? undefined : app.subdomain],
        ['Git', app.push_url],
        ['Source', app.git_url === app.push_url ? undefined : app.git_url],
        ['Branch', app.branch],
        ['Release', app.current_release === null ? 'none yet' : `v${app.current_release.version}`],
        ['Preview', app.preview === null ? undefined : `of branch ${app.preview.branch}`],
        [
          'Status',
          app.restorable_until === null ? app.status : `${app.status}, restorable until ${app.restorable_until.slice(0, 10)}`,
        ],
        ['Created', relativeTime(app.created_at, context.now())],
        ['Id', app.id],
      ]),
      app,
    );
  },
});

export const open = defineCommand({
  name: 'open',
  aliases: ['apps:open'],
  group: 'Apps',
  summary: 'open the app in a browser',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await readApp(context, await context.appName(flags));
    context.print(`${app.web_url}\n`, { url: app.web_url });
    const opener = process.platform === 'darwin' ? 'open' : 'xdg-open';
    if (!(await runDetached(opener, [app.web_url], 2)))
      context.talk('No browser could be started here: open the address yourself.');
  },
});

export const destroy = defineCommand({
  name: 'destroy',
  aliases: ['apps:destroy'],
  group: 'Apps',
  summary: 'stop and delete an app; it can be restored for 30 days',
  args: {},
  flags: {
    ...appFlags,
    confirm: { kind: 'string', short: 'c', value: 'NAME', summary: 'the name of the app, in place of typing it when asked' },
  },
  examples: ['paas destroy -c hello'],
  async run(context, { flags }) {
    const app = (await context.findAppName(flags)) ?? flags.confirm ?? (await context.appName(flags));
    const confirmed =
      flags.confirm ??
      (await ask(context.terminal, `This stops ${app} and deletes it. Type its name`, `Confirm with -c ${app}.`));
    if (confirmed !== app)
      throw usageError(
        `The app is ${app}, but the name given is another: nothing was deleted.`,
        `To delete it: paas destroy -a ${app} -c ${app}`,
      );
    const api = await context.api();
    const { data } = await context.doing(
      `Deleting ${app}`,
      answerOf(api.DELETE('/v1/apps/{id}', { params: { path: { id: app } } })),
    );
    context.talk(`Until ${data.restorable_until?.slice(0, 10) ?? 'it is purged'} you can have it back: paas restore -a ${app}`);
    context.print('', data);
  },
});

export const restore = defineCommand({
  name: 'restore',
  aliases: ['apps:restore'],
  group: 'Apps',
  summary: 'bring a deleted app back (`paas apps --deleted` lists them)',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const { data } = await context.doing(
      `Restoring ${app}`,
      answerOf(api.POST('/v1/apps/{id}/restore', { params: { path: { id: app } } })),
    );
    context.print(`${data.web_url}\n`, data);
  },
});

export async function readApp(context: Context, app: string) {
  const api = await context.api();
  return (await answerOf(api.GET('/v1/apps/{id}', { params: { path: { id: app } } }))).data;
}
