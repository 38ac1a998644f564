import { appFlags, defineCommand } from '#cli/command.ts';
import { readApp } from '#cli/commands/apps.ts';
import { checkRemoteName, defaultRemote } from '#cli/context.ts';
import { CliError } from '#cli/errors.ts';

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
