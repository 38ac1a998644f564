import { basename, resolve } from 'node:path';
import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import { commitFolder } from '#cli/git/folder-commit.ts';
import { pushCommit, readRemoteTip } from '#cli/git/push-commit.ts';
import { logLine, oneLine } from '#cli/output/sanitize.ts';
import { readApp } from '#cli/queries/read-app.ts';
import { answerOf } from '#shared/api-client/client.ts';

/** Of the files that cannot be deployed. */
const shownSkipped = 5;

export const deploy = defineCommand({
  name: 'deploy',
  group: 'Builds',
  summary: 'deploy a folder, without git',
  args: { directory: { kind: 'optional', summary: 'the folder (default: the current one)' } },
  flags: {
    ...appFlags,
    branch: { kind: 'string', short: 'b', value: 'NAME', summary: 'deploy to the preview of this branch' },
    message: {
      kind: 'string',
      short: 'm',
      value: 'TEXT',
      summary: 'description of the deploy (default: the name of the folder)',
    },
  },
  details: [
    'It needs neither git nor ssh. What .gitignore and .paasignore name is left out, and so are node_modules, .venv, __pycache__, .env and .env.local.',
    'Each deploy is a commit on top of the one before. Who also pushes with git has to fetch it first.',
  ],
  examples: ['paas deploy -a hello', 'paas deploy ./site -a hello -b try-it'],
  async run(context, { args, flags }) {
    const directory = resolve(context.terminal.cwd, args.directory ?? '.');
    // It also renews a token that has expired.
    const app = await readApp(context, await context.appName(flags));
    const { data: user } = await answerOf((await context.api()).GET('/v1/user'));
    const branch = flags.branch ?? app.branch;
    const repository = { url: `${await context.host()}/${app.name}.git`, headers: await context.gitHeaders() };
    const commit = await commitFolder({
      directory,
      parent: await readRemoteTip(repository, branch),
      message: flags.message ?? `Deploy ${basename(directory)}`,
      author: { name: user.email, email: user.email },
    });
    try {
      for (const path of commit.skipped.slice(0, shownSkipped))
        context.report(`Skipped ${oneLine(path)}: a socket, pipe or device cannot be deployed.`);
      if (commit.skipped.length > shownSkipped) context.report(`Skipped ${commit.skipped.length - shownSkipped} more of these.`);
      context.report(
        `Deploying ${commit.files} ${commit.files === 1 ? 'file' : 'files'} of ${oneLine(directory)} to ${app.name} (${branch})`,
      );
      await pushCommit(repository, commit, branch, (text) => {
        context.report(context.terminal.stderr.isTTY === true ? logLine(text) : text);
        // It has arrived: nothing is left behind when somebody presses Ctrl-C during the build.
        void commit.remove();
      });
    } finally {
      await commit.remove();
    }
    const isPreview = branch !== app.branch;
    context.print(isPreview ? '' : `${app.web_url}\n`, { app: app.name, branch, commit: commit.oid, files: commit.files });
  },
});
