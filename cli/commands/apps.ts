import { setTimeout } from 'node:timers/promises';
import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import { checkRemoteName, defaultRemote } from '#cli/context/context.ts';
import { CliError, exitCodes, usageError } from '#cli/errors/cli-error.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { keyValues, table } from '#cli/output/table.ts';
import { readApp } from '#cli/queries/read-app.ts';
import { ask } from '#cli/terminal/prompt.ts';
import { runDetached } from '#cli/terminal/run-tool.ts';
import { type Api, answerOf } from '#shared/api-client/client.ts';
import { eachItem, firstItems } from '#shared/api-client/pages.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

/** How long the command waits until an app is purged. */
const purgeSeconds = 60;
const purgePollMilliseconds = 300;

export const create = defineCommand({
  name: 'create',
  aliases: ['apps:create'],
  group: 'Apps',
  summary: 'create an app and add a git remote for it',
  args: { name: { kind: 'optional', summary: 'name and subdomain of the app (default: generated)' } },
  flags: {
    remote: { kind: 'string', short: 'r', value: 'NAME', summary: `name of the git remote (default: ${defaultRemote})` },
    'no-remote': { kind: 'boolean', summary: 'do not add a git remote' },
    branch: { kind: 'string', short: 'b', value: 'NAME', summary: 'branch to deploy (default: main)' },
    dir: { kind: 'string', value: 'PATH', summary: 'folder of the repository that the app is built of (default: all of it)' },
  },
  examples: ['paas create hello', 'paas create hello-staging -r staging', 'paas create api --dir services/api -r api'],
  async run(context, { args, flags }) {
    const api = await context.api();
    const remote = checkRemoteName(flags.remote ?? defaultRemote);
    const wantsRemote = !flags['no-remote'] && (await context.git.inRepository());
    const present = wantsRemote ? await context.git.read(remote) : undefined;
    if (present !== undefined) {
      throw new CliError(`The git remote "${remote}" already points to ${present}. No app was created.`, {
        exitCode: exitCodes.conflict,
        hint: 'Choose another name with -r NAME, or use --no-remote.',
      });
    }
    const body = omitUndefined({ name: args.name, branch: flags.branch });
    const { data: app } = await context.showProgress(
      `Creating ${args.name ?? 'an app'}`,
      answerOf(api.POST('/v1/apps', { body })),
      (created) => (args.name === undefined ? created.data.name : 'done'),
    );
    if (flags.dir !== undefined) await setDirectory(api, app.name, flags.dir);
    context.print(`${app.web_url} | ${app.push_url}\n`, app);
    if (wantsRemote) {
      await context.git.add(remote, app.push_url);
      // The first push to a new app takes its branch as that of the app, unless one was chosen.
      const branch = flags.branch ?? (await context.git.currentBranch()) ?? app.branch;
      context.report(`Added the git remote "${remote}". Next: git push ${remote} ${branch}`);
    } else if (!flags['no-remote']) {
      context.report(`There is no git repository here. In one, run: paas git:remote -a ${app.name}`);
    }
  },
});

/** @throws CliError that says what is left to do: the app exists already */
async function setDirectory(api: Api, app: string, directory: string): Promise<void> {
  try {
    await answerOf(api.PATCH('/v1/apps/{id}/settings', { params: { path: { id: app } }, body: { directory } }));
  } catch (error) {
    throw new CliError(
      `${app} was created, but its folder was not set: ${error instanceof Error ? error.message : String(error)}`,
      {
        hint: `Set it: paas settings:set directory=PATH -a ${app}`,
        cause: error,
      },
    );
  }
}

export const apps = defineCommand({
  name: 'apps',
  aliases: ['apps:list', 'list'],
  group: 'Apps',
  summary: 'list your apps',
  args: {},
  flags: { deleted: { kind: 'boolean', summary: 'list deleted apps that can be restored' } },
  async run(context, { flags }) {
    const api = await context.api();
    const found = await firstItems(
      eachItem((page) =>
        answerOf(api.GET('/v1/apps', { params: { query: { ...page, ...(flags.deleted ? { deleted: 'true' as const } : {}) } } })),
      ),
    );
    if (found.length === 0)
      context.report(flags.deleted ? 'You have no apps to restore.' : 'You have no apps. Create one with `paas create`.');
    const rows = found.map((app) => [
      app.name,
      app.current_release === null ? 'no release' : `v${app.current_release.version}`,
      app.restorable_until === null ? app.web_url : `restorable until ${app.restorable_until.slice(0, 10)}`,
      `changed ${relativeTime(app.updated_at, context.now())}`,
      app.preview === null ? '' : `preview of ${oneLine(app.preview.branch)}`,
    ]);
    context.print(table(rows), found);
  },
});

export const info = defineCommand({
  name: 'info',
  aliases: ['apps:info'],
  group: 'Apps',
  summary: 'show details of the app',
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
        ['Release', app.current_release === null ? 'none' : `v${app.current_release.version}`],
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
    if (!(await runDetached(opener, [app.web_url], 2))) context.report('Cannot start a browser. Open the address yourself.');
  },
});

export const destroy = defineCommand({
  name: 'destroy',
  aliases: ['apps:destroy'],
  group: 'Apps',
  summary: 'delete an app (it can be restored for 30 days)',
  args: {},
  flags: {
    ...appFlags,
    confirm: { kind: 'string', short: 'c', value: 'NAME', summary: 'name of the app, as confirmation (default: ask)' },
    purge: { kind: 'boolean', summary: 'delete it for good, also if it is deleted already; its name is free again' },
  },
  examples: ['paas destroy -c hello', 'paas destroy -c hello --purge'],
  async run(context, { flags }) {
    const app = (await context.findAppName(flags)) ?? flags.confirm ?? (await context.appName(flags));
    const confirmed =
      flags.confirm ??
      (await ask(
        context.terminal,
        flags.purge
          ? `This deletes ${app} and all of its data for good. To confirm, type its name`
          : `This stops and deletes ${app}. To confirm, type its name`,
        `Confirm with -c ${app}.`,
      ));
    if (confirmed !== app)
      throw usageError(
        `The confirmation is not the name of the app, ${app}. Nothing was deleted.`,
        `To confirm: paas destroy -a ${app} -c ${app}`,
      );
    const api = await context.api();
    const { data } = await context.showProgress(`Deleting ${app}`, purgeOrDelete(api, app, flags.purge));
    if (!flags.purge)
      context.report(`You can restore it until ${data.restorable_until?.slice(0, 10) ?? 'it is purged'}: paas restore -a ${app}`);
    context.print('', data);
  },
});

/** A purge is over when the app is not found any more. */
async function purgeOrDelete(api: Api, app: string, purge: boolean) {
  const params = { path: { id: app }, ...(purge ? { query: { purge: 'true' as const } } : {}) };
  const answer = await answerOf(api.DELETE('/v1/apps/{id}', { params }));
  const deadline = Date.now() + purgeSeconds * 1000;
  while (purge) {
    const { response } = await api.GET('/v1/apps/{id}', { params: { path: { id: answer.data.id } } });
    if (response.status === 404) break;
    if (Date.now() > deadline)
      throw new CliError(`${app} is deleted, but not all of it is removed yet.`, { hint: 'Its name is free in a few minutes.' });
    await setTimeout(purgePollMilliseconds);
  }
  return answer;
}

export const restore = defineCommand({
  name: 'restore',
  aliases: ['apps:restore'],
  group: 'Apps',
  summary: 'restore a deleted app (list them with `paas apps --deleted`)',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const { data } = await context.showProgress(
      `Restoring ${app}`,
      answerOf(api.POST('/v1/apps/{id}/restore', { params: { path: { id: app } } })),
    );
    context.print(`${data.web_url}\n`, data);
  },
});
