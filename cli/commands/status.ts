import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import type { Context } from '#cli/context/context.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { keyValues } from '#cli/output/table.ts';
import { eachBuild } from '#cli/queries/each-build.ts';
import { readApp } from '#cli/queries/read-app.ts';
import { answerOf } from '#shared/api-client/client.ts';
import { firstItems } from '#shared/api-client/pages.ts';

export const status = defineCommand({
  name: 'status',
  group: 'Platform',
  summary: 'show the status of the platform and of the app',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const host = await context.host();
    const startedMs = performance.now();
    const { data: health } = await answerOf((await context.anonymousApi()).GET('/v1/healthz'));
    const answeredMs = Math.round(performance.now() - startedMs);
    const login = await readLogin(context, host);
    const name = login === undefined ? undefined : await context.findAppName(flags);
    const app = name === undefined ? undefined : await readAppStatus(context, name);
    context.print(
      keyValues([
        ['Platform', `${host}: ${context.paint('green', health.status)} (${answeredMs} ms)`],
        ['Logged in', login ?? 'no'],
        ['App', app?.name],
        ['Release', app?.release],
        ['Last build', app?.build],
        ['Running', app?.running],
      ]),
      { host, status: health.status, answered_ms: answeredMs, email: login ?? null, app: app ?? null },
    );
  },
});

/** The email of the stored login, without checking it. */
async function readLogin(context: Context, host: string): Promise<string | undefined> {
  if (context.env('PAAS_TOKEN') !== undefined) return 'by PAAS_TOKEN';
  return (await context.credentials.read()).hosts[host]?.email;
}

async function readAppStatus(context: Context, name: string) {
  const api = await context.api();
  const path = { id: name };
  const [app, [build], { data: processes }] = await Promise.all([
    readApp(context, name),
    firstItems(eachBuild(api, name), 1),
    answerOf(api.GET('/v1/apps/{id}/processes', { params: { path } })),
  ]);
  const running = processes.map(({ type, instances, quantity }) => {
    const up = instances.filter(({ state }) => state === 'up').length;
    return `${type} ${up} of ${quantity}`;
  });
  return {
    name: app.name,
    release: app.current_release === null ? 'none' : `v${app.current_release.version}`,
    build: build === undefined ? 'none' : `${build.status}, ${relativeTime(build.created_at, context.now())}`,
    running: running.length === 0 ? 'nothing' : running.join(', '),
  };
}
