import { setTimeout as delay } from 'node:timers/promises';
import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import type { Context } from '#cli/context/context.ts';
import { CliError, type ExitCode, exitCodes } from '#cli/errors/cli-error.ts';
import { type Style } from '#cli/output/paint.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { table } from '#cli/output/table.ts';
import { type Api, answerOf } from '#shared/api-client/client.ts';
import { eachItem, firstItems } from '#shared/api-client/pages.ts';

const statusStyles = { pending: 'yellow', succeeded: 'green', failed: 'red' } as const satisfies Record<string, Style>;

export const releases = defineCommand({
  name: 'releases',
  group: 'Releases',
  summary: 'what was released, newest first',
  args: {},
  flags: { ...appFlags, number: { kind: 'integer', short: 'n', value: 'NUMBER', summary: 'how many (default: 15)' } },
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const found = await firstItems(eachRelease(await context.api(), app), flags.number ?? 15);
    if (found.length === 0) context.talk(`${app} has no release yet. Push with \`git push paas main\`.`);
    const rows = found.map((release) => [
      `v${release.version}`,
      context.paint(statusStyles[release.status], release.status),
      oneLine(release.description),
      oneLine(release.created_by),
      relativeTime(release.created_at, context.now()),
      release.current ? context.paint('bold', 'current') : '',
    ]);
    context.print(table(rows), found);
  },
});

export const rollback = defineCommand({
  name: 'rollback',
  aliases: ['releases:rollback'],
  group: 'Releases',
  summary: 'release an earlier release again',
  args: { release: { kind: 'optional', summary: 'its version, as v6 (default: the one before the current)' } },
  flags: { ...appFlags, detach: { kind: 'boolean', short: 'd', summary: 'do not wait until it is live' } },
  details: [
    'Makes a new release of the image, processes and variables of the earlier one, and moves the traffic to it step by step.',
  ],
  async run(context, { args, flags }): Promise<ExitCode | void> {
    const app = await context.appName(flags);
    const api = await context.api();
    const target = args.release ?? (await releaseBeforeCurrent(api, app));
    const { data } = await context.doing(
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

export function eachRelease(api: Api, app: string) {
  return eachItem((query) => answerOf(api.GET('/v1/apps/{id}/releases', { params: { path: { id: app }, query } })));
}

async function releaseBeforeCurrent(api: Api, app: string): Promise<string> {
  let current: number | undefined;
  for await (const release of eachRelease(api, app)) {
    if (current !== undefined && release.status === 'succeeded') return `v${release.version}`;
    if (release.current) current = release.version;
  }
  throw new CliError(`${app} has no earlier release to go back to.`, {
    exitCode: exitCodes.conflict,
    hint: 'See `paas releases`.',
  });
}

/** Says each step of a deploy on stderr until it is over. */
async function watchDeploy(context: Context, api: Api, app: string, deployId: string) {
  const { stderr } = context.terminal;
  stderr.write('Rolling out:');
  for (let told = 0; ; await delay(500)) {
    const deploys = eachItem((query) => answerOf(api.GET('/v1/apps/{id}/deploys', { params: { path: { id: app }, query } })));
    const deploy = await firstMatch(deploys, ({ id }) => id === deployId);
    if (deploy === undefined) throw new CliError('The deploy is gone.', { hint: 'See `paas releases`.' });
    for (const step of deploy.steps.slice(told)) stderr.write(` ${step.weight}%`);
    told = deploy.steps.length;
    if (deploy.status === 'pending' || deploy.status === 'rolling') continue;
    stderr.write(
      deploy.status === 'live' ? ` ${context.paintTalk('green', 'live')}\n` : ` ${context.paintTalk('red', deploy.status)}\n`,
    );
    if (deploy.error !== null) context.talk(`${context.paintTalk('red', ' !    ')} ${oneLine(deploy.error)}`);
    return deploy;
  }
}

async function firstMatch<Item>(items: AsyncIterable<Item>, matches: (item: Item) => boolean): Promise<Item | undefined> {
  for await (const item of items) if (matches(item)) return item;
  return undefined;
}
