import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import { printBuildLog } from '#cli/commands/build-log.ts';
import { CliError, exitCodes } from '#cli/errors/cli-error.ts';
import { type Style } from '#cli/output/paint.ts';
import { duration, relativeTime } from '#cli/output/relative-time.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { keyValues, table } from '#cli/output/table.ts';
import { type Api, answerOf } from '#shared/api-client/client.ts';
import { eachItem, firstItems } from '#shared/api-client/pages.ts';

type Build = Awaited<ReturnType<typeof readBuild>>;

const statusStyles = {
  queued: 'yellow',
  running: 'yellow',
  succeeded: 'green',
  failed: 'red',
  canceled: 'red',
} as const satisfies Record<string, Style>;
/** Enough of an id to tell builds apart in a list. */
const shownIdLength = 8;

export const builds = defineCommand({
  name: 'builds',
  group: 'Builds',
  summary: 'what was built, newest first',
  args: {},
  flags: { ...appFlags, number: { kind: 'integer', short: 'n', value: 'NUMBER', summary: 'how many (default: 15)' } },
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const found = await firstItems(eachBuild(await context.api(), app), flags.number ?? 15);
    if (found.length === 0) context.talk(`${app} was never built. Push with \`git push paas main\`.`);
    const rows = found.map((build) => [
      build.id.slice(0, shownIdLength),
      context.paint(statusStyles[build.status], build.status),
      build.commit?.slice(0, 7) ?? '',
      oneLine(build.branch ?? archiveName(build)),
      build.cache_state,
      buildTime(build),
      relativeTime(build.created_at, context.now()),
      oneLine(build.error ?? ''),
    ]);
    context.print(table(rows), found);
  },
});

export const buildsCreate = defineCommand({
  name: 'builds:create',
  aliases: ['rebuild'],
  group: 'Builds',
  summary: 'build and deploy again what is pushed already, or an archive',
  args: {},
  flags: {
    ...appFlags,
    branch: {
      kind: 'string',
      short: 'b',
      value: 'BRANCH',
      summary: "of the app's repository (default: the one that is deployed)",
    },
    commit: { kind: 'string', value: 'COMMIT', summary: 'its 40 hex digits, instead of a branch' },
    'source-url': { kind: 'string', value: 'URL', summary: 'https address of a tar.gz, instead of a branch or commit' },
    'source-sha256': { kind: 'string', value: 'HEX', summary: 'its SHA-256: anything else there is not built' },
    detach: { kind: 'boolean', summary: 'do not wait for it' },
  },
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const { branch, commit, 'source-url': source_url, 'source-sha256': source_sha256 } = flags;
    const body = {
      ...(branch === undefined ? {} : { branch }),
      ...(commit === undefined ? {} : { commit }),
      ...(source_url === undefined ? {} : { source_url }),
      ...(source_sha256 === undefined ? {} : { source_sha256 }),
    };
    const { data } = await answerOf(api.POST('/v1/apps/{id}/builds', { params: { path: { id: app } }, body }));
    if (flags.detach) {
      context.print(data.id, data);
      return;
    }
    await printBuildLog(context, app, data.id);
    await checkSuccess(api, app, data.id);
  },
});

export const buildsLogs = defineCommand({
  name: 'builds:logs',
  aliases: ['builds:output'],
  group: 'Builds',
  summary: 'what a build printed; of a running one, as it prints it',
  args: { build: { kind: 'optional', summary: 'its id, or the start of it (default: the latest)' } },
  flags: appFlags,
  details: [
    'Picks up again by itself when the connection breaks. Ctrl-C stops watching, the build goes on.',
    'The exit code is 1 when a build that was still running fails or is canceled; showing an old one is always 0.',
  ],
  async run(context, { args, flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const build = await findBuild(api, app, args.build);
    const isRunning = build.status === 'queued' || build.status === 'running';
    if (isRunning)
      context.talk(
        context.paintTalk(
          'dim',
          `Build ${build.id.slice(0, shownIdLength)} is ${build.status}. Ctrl-C stops watching; the build goes on.`,
        ),
      );
    await printBuildLog(context, app, build.id);
    if (isRunning) await checkSuccess(api, app, build.id);
  },
});

export const buildsCancel = defineCommand({
  name: 'builds:cancel',
  group: 'Builds',
  summary: 'stop a build; what serves now goes on serving',
  args: { build: { kind: 'optional', summary: 'its id, or the start of it (default: the latest)' } },
  flags: appFlags,
  async run(context, { args, flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const { id } = await findBuild(api, app, args.build);
    const { data } = await context.doing(
      `Canceling build ${id.slice(0, shownIdLength)} of ${app}`,
      answerOf(api.POST('/v1/apps/{id}/builds/{bid}/cancel', { params: { path: { id: app, bid: id } } })),
    );
    context.print('', data);
  },
});

export const buildsCache = defineCommand({
  name: 'builds:cache',
  group: 'Builds',
  summary: 'where the build cache is kept, and whether the last build had it',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const { data } = await answerOf(api.GET('/v1/apps/{id}/build_cache', { params: { path: { id: app } } }));
    const [latest] = await firstItems(eachBuild(api, app), 1);
    context.print(
      keyValues([
        ['Volume', data.pvc_name],
        ['Namespace', data.namespace],
        [
          'Last build',
          latest === undefined ? 'none yet' : `${latest.cache_state}, ${relativeTime(latest.created_at, context.now())}`,
        ],
      ]),
      data,
    );
  },
});

export const buildsCachePurge = defineCommand({
  name: 'builds:cache:purge',
  aliases: ['builds:cache:flush'],
  group: 'Builds',
  summary: 'delete the build cache; the next build starts cold',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const { data } = await context.doing(
      `Purging the build cache of ${app}`,
      answerOf(api.DELETE('/v1/apps/{id}/build_cache/flush', { params: { path: { id: app } } })),
      (answer) => oneLine(answer.data.message),
    );
    context.print('', data);
  },
});

export function eachBuild(api: Api, app: string) {
  return eachItem((query) => answerOf(api.GET('/v1/apps/{id}/builds', { params: { path: { id: app }, query } })));
}

async function readBuild(api: Api, app: string, bid: string) {
  return (await answerOf(api.GET('/v1/apps/{id}/builds/{bid}', { params: { path: { id: app, bid } } }))).data;
}

/** By its full id, or by the start of one: then among all builds of the app. */
async function findBuild(api: Api, app: string, id: string | undefined): Promise<Build> {
  if (id === undefined || id === 'latest' || id.length === 36) return readBuild(api, app, id ?? 'latest');
  const found = [];
  for await (const build of eachBuild(api, app)) if (build.id.startsWith(id.toLowerCase())) found.push(build);
  const [build] = found;
  if (build === undefined)
    throw new CliError(`${app} has no such build.`, { exitCode: exitCodes.notFound, hint: 'List them with `paas builds`.' });
  if (found.length > 1)
    throw new CliError(`${found.length} builds of ${app} start like that.`, {
      exitCode: exitCodes.conflict,
      hint: 'Give more of the id.',
    });
  return build;
}

/** Of what was built without a commit: the last name in its address. */
function archiveName({ source_url }: Build): string {
  return source_url?.split('/').findLast((part) => part !== '') ?? '';
}

function buildTime(build: Build): string {
  if (build.started_at === null) return '';
  const end = build.finished_at === null ? Date.now() : Date.parse(build.finished_at);
  return duration(Math.max(0, end - Date.parse(build.started_at)) / 1000);
}

/** The build and the deploy it led to are over. @throws CliError when either failed */
async function checkSuccess(api: Api, app: string, buildId: string): Promise<void> {
  const build = await readBuild(api, app, buildId);
  if (build.status !== 'succeeded') throw new CliError(oneLine(build.error ?? `The build was ${build.status}.`));
  const { data: deploys } = await answerOf(
    api.GET('/v1/apps/{id}/deploys', { params: { path: { id: app }, query: { limit: 50 } } }),
  );
  const deploy = deploys.find((one) => one.release_id === build.release_id);
  if (deploy?.status === 'failed' || deploy?.status === 'aborted')
    throw new CliError(oneLine(deploy.error ?? `The deploy ${deploy.status}.`));
}
