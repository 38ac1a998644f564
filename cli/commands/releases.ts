import { setTimeout as delay } from 'node:timers/promises';
import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import type { Context } from '#cli/context/context.ts';
import { CliError, type ExitCode, exitCodes } from '#cli/errors/cli-error.ts';
import { type Style } from '#cli/output/paint.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { table } from '#cli/output/table.ts';
import { eachRelease } from '#cli/queries/each-release.ts';
import { type Api, answerOf } from '#shared/api-client/client.ts';
import { eachItem, firstItems } from '#shared/api-client/pages.ts';

const statusStyles = { pending: 'yellow', succeeded: 'green', failed: 'red' } as const satisfies Record<string, Style>;

export const releases = defineCommand({
  name: 'releases',
  group: 'Releases',
  summary: 'list releases, newest first',
  args: {},
  flags: { ...appFlags, number: { kind: 'integer', short: 'n', value: 'NUMBER', summary: 'number of releases (default: 15)' } },
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const found = await firstItems(eachRelease(await context.api(), app), flags.number ?? 15);
    if (found.length === 0) context.report(`${app} has no releases. Push with \`git push paas main\`.`);
    const rows = found.map((release) => [
      `v${release.version}`,
      context.paint(statusStyles[release.status], release.status),
      oneLine(release.description),
      oneLine(release.created_by),
      relativeTime(release.created_at, context.now()),
      release.current ? context.paint('bold', 'current') : '',
      oneLine(release.commit_title ?? ''),
    ]);
    context.print(table(rows), found);
  },
});

export const rollback = defineCommand({
  name: 'rollback',
  aliases: ['releases:rollback'],
  group: 'Releases',
  summary: 'roll back to an earlier release',
  args: { release: { kind: 'optional', summary: 'version, for example v6 (default: the release before the current one)' } },
  flags: { ...appFlags, detach: { kind: 'boolean', short: 'd', summary: 'do not wait for the deploy' } },
  details: [
    'Creates a new release with the image, processes and variables of the earlier one, and moves the traffic to it step by step.',
  ],
  async run(context, { args, flags }): Promise<ExitCode | void> {
    const app = await context.appName(flags);
    const api = await context.api();
    const target = args.release ?? (await releaseBeforeCurrent(api, app));
    const { data } = await context.showProgress(
      `Rolling ${app} back to ${target}`,
      answerOf(api.POST('/v1/apps/{id}/deploys/{rid}/rollback', { params: { path: { id: app, rid: target } } })),
      (answer) => `as v${answer.data.version}`,
    );
    if (flags.detach) {
      context.print('', data);
      return;
    }
    const deploy = await watchDeploy(context, api, app, data.id);
    context.print('', deploy);
    return deploy.status === 'live' ? undefined : exitCodes.failed;
  },
});

async function releaseBeforeCurrent(api: Api, app: string): Promise<string> {
  let current: number | undefined;
  for await (const release of eachRelease(api, app)) {
    if (current !== undefined && release.status === 'succeeded') return `v${release.version}`;
    if (release.current) current = release.version;
  }
  throw new CliError(`${app} has no earlier release to roll back to.`, {
    exitCode: exitCodes.conflict,
    hint: 'See `paas releases`.',
  });
}

/** Writes each step of a deploy to stderr until the deploy is over. */
async function watchDeploy(context: Context, api: Api, app: string, deployId: string) {
  const { stderr } = context.terminal;
  stderr.write('Rolling out:');
  for (let written = 0; ; await delay(500)) {
    const deploys = eachItem((query) => answerOf(api.GET('/v1/apps/{id}/deploys', { params: { path: { id: app }, query } })));
    const deploy = await firstMatch(deploys, ({ id }) => id === deployId);
    if (deploy === undefined) throw new CliError('The deploy does not exist any more.', { hint: 'See `paas releases`.' });
    for (const step of deploy.steps.slice(written)) stderr.write(` ${step.weight}%`);
    written = deploy.steps.length;
    if (deploy.status === 'pending' || deploy.status === 'rolling') continue;
    stderr.write(
      deploy.status === 'live' ? ` ${context.paintStderr('green', 'live')}\n` : ` ${context.paintStderr('red', deploy.status)}\n`,
    );
    if (deploy.error !== null) context.report(`${context.paintStderr('red', ' !    ')} ${oneLine(deploy.error)}`);
    return deploy;
  }
}

async function firstMatch<Item>(items: AsyncIterable<Item>, matches: (item: Item) => boolean): Promise<Item | undefined> {
  for await (const item of items) if (matches(item)) return item;
  return undefined;
}
