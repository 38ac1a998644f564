import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import { printBuildLog } from '#cli/commands/build-log.ts';
import { CliError, exitCodes } from '#cli/errors/cli-error.ts';
import { type Style } from '#cli/output/paint.ts';
import { duration, relativeTime } from '#cli/output/relative-time.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { keyValues, table } from '#cli/output/table.ts';
import { eachBuild } from '#cli/queries/each-build.ts';
import { type Api, answerOf } from '#shared/api-client/client.ts';
import { firstItems } from '#shared/api-client/pages.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

type Build = Awaited<ReturnType<typeof readBuild>>;

const statusStyles = {
  queued: 'yellow',
  running: 'yellow',
  succeeded: 'green',
  failed: 'red',
  canceled: 'red',
} as const satisfies Record<string, Style>;
/** Characters of an id that are shown in a list. */
const shownIdLength = 8;

export const builds = defineCommand({
  name: 'builds',
  group: 'Builds',
  summary: 'list builds, newest first',
  args: {},
  flags: { ...appFlags, number: { kind: 'integer', short: 'n', value: 'NUMBER', summary: 'number of builds (default: 15)' } },
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const found = await firstItems(eachBuild(await context.api(), app), flags.number ?? 15);
    if (found.length === 0) context.report(`${app} has no builds. Push with \`git push paas main\`.`);
    const rows = found.map((build) => [
      build.id.slice(0, shownIdLength),
      context.paint(statusStyles[build.status], build.status),
      build.commit?.slice(0, 7) ?? '',
      oneLine(build.branch ?? archiveName(build)),
      build.cache_state,
      buildTime(build),
      relativeTime(build.created_at, context.now()),
      oneLine(build.error ?? build.commit_title ?? ''),
    ]);
    context.print(table(rows), found);
  },
});

export const buildsCreate = defineCommand({
  name: 'builds:create',
  aliases: ['rebuild'],
  group: 'Builds',
  summary: 'build and deploy a pushed branch or commit, an archive or an image',
  args: {},
  flags: {
    ...appFlags,
    branch: {
      kind: 'string',
      short: 'b',
      value: 'BRANCH',
      summary: 'branch to build (default: the branch that is deployed)',
    },
    commit: { kind: 'string', value: 'COMMIT', summary: 'commit to build, 40 hex digits' },
    'source-url': { kind: 'string', value: 'URL', summary: 'HTTPS URL of a tar.gz to build' },
    'source-sha256': { kind: 'string', value: 'HEX', summary: 'SHA-256 that the archive must have' },
    image: { kind: 'string', value: 'IMAGE', summary: 'container image to release, for example ghcr.io/owner/name:1.2' },
    detach: { kind: 'boolean', summary: 'do not wait for the build' },
  },
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const { branch, commit, 'source-url': source_url, 'source-sha256': source_sha256, image } = flags;
    const body = omitUndefined({ branch, commit, source_url, source_sha256, image });
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
  summary: 'show the log of a build, and follow it while it runs',
  args: { build: { kind: 'optional', summary: 'id of the build or its first characters (default: the latest build)' } },
  flags: appFlags,
  details: [
    'If the connection breaks, the command reconnects. Ctrl-C stops the command, not the build.',
    'The exit code is 1 if a running build fails or is canceled. For a finished build it is 0.',
  ],
  async run(context, { args, flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const build = await findBuild(api, app, args.build);
    const isRunning = build.status === 'queued' || build.status === 'running';
    if (isRunning)
      context.report(
        context.paintStderr(
          'dim',
          `Build ${build.id.slice(0, shownIdLength)} is ${build.status}. Ctrl-C stops this command, not the build.`,
        ),
      );
    await printBuildLog(context, app, build.id);
    if (isRunning) await checkSuccess(api, app, build.id);
  },
});

export const buildsCancel = defineCommand({
  name: 'builds:cancel',
  group: 'Builds',
  summary: 'cancel a build',
  args: {
    build: { kind: 'optional', summary: 'id of the build or its first characters (default: the newest that runs or waits)' },
  },
  flags: appFlags,
  async run(context, { args, flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const { id } = args.build === undefined ? await findOpenBuild(api, app) : await findBuild(api, app, args.build);
    const { data } = await context.showProgress(
      `Canceling build ${id.slice(0, shownIdLength)} of ${app}`,
      answerOf(api.POST('/v1/apps/{id}/builds/{bid}/cancel', { params: { path: { id: app, bid: id } } })),
    );
    context.print('', data);
  },
});

export const buildsCache = defineCommand({
  name: 'builds:cache',
  group: 'Builds',
  summary: 'show the build cache',
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
          latest === undefined ? 'none' : `${latest.cache_state}, ${relativeTime(latest.created_at, context.now())}`,
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
  summary: 'delete the build cache',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const { data } = await context.showProgress(
      `Purging the build cache of ${app}`,
      answerOf(api.DELETE('/v1/apps/{id}/build_cache/flush', { params: { path: { id: app } } })),
      (answer) => oneLine(answer.data.message),
    );
    context.print('', data);
  },
});

async function readBuild(api: Api, app: string, bid: string) {
  return (await answerOf(api.GET('/v1/apps/{id}/builds/{bid}', { params: { path: { id: app, bid } } }))).data;
}

/** Finds a build by its id, by the first characters of it, or as `latest`. */
async function findBuild(api: Api, app: string, id: string | undefined): Promise<Build> {
  if (id === undefined || id === 'latest' || id.length === 36) return readBuild(api, app, id ?? 'latest');
  const found = [];
  for await (const build of eachBuild(api, app)) if (build.id.startsWith(id.toLowerCase())) found.push(build);
  const [build] = found;
  if (build === undefined)
    throw new CliError(`${app} has no such build.`, { exitCode: exitCodes.notFound, hint: 'List them with `paas builds`.' });
  if (found.length > 1)
    throw new CliError(`${found.length} builds of ${app} have an id that begins with these characters.`, {
      exitCode: exitCodes.conflict,
      hint: 'Use more characters of the id.',
    });
  return build;
}

/** The newest build that is not over. @throws CliError if there is none */
async function findOpenBuild(api: Api, app: string): Promise<Build> {
  for await (const build of eachBuild(api, app)) if (build.status === 'running' || build.status === 'queued') return build;
  throw new CliError(`No build of ${app} is running.`, { exitCode: exitCodes.conflict, hint: 'List them with `paas builds`.' });
}

/** The file name in the URL of an archive, or the image. */
function archiveName({ source_url, source_image }: Build): string {
  if (source_image !== null) return source_image;
  return source_url?.split('/').findLast((part) => part !== '') ?? '';
}

function buildTime(build: Build): string {
  if (build.started_at === null) return '';
  const end = build.finished_at === null ? Date.now() : Date.parse(build.finished_at);
  return duration(Math.max(0, end - Date.parse(build.started_at)) / 1000);
}

/** Checks a finished build and its deploy. @throws CliError when one of them failed */
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
