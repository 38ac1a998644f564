import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import type { Context } from '#cli/context/context.ts';
import { usageError } from '#cli/errors/cli-error.ts';
import { type Style } from '#cli/output/paint.ts';
import { relativeTime } from '#cli/output/relative-time.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { table } from '#cli/output/table.ts';
import { answerOf } from '#shared/api-client/client.ts';

const stateStyles = { up: 'green', starting: 'yellow', stopping: 'yellow', crashed: 'red' } as const satisfies Record<
  string,
  Style
>;

export const ps = defineCommand({
  name: 'ps',
  group: 'Processes',
  summary: 'list the processes of the app',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const { data } = await answerOf((await context.api()).GET('/v1/apps/{id}/processes', { params: { path: { id: app } } }));
    if (data.length === 0) context.report(await describeWithoutProcesses(context, app));
    const text = data.map((process) => {
      const heading = `=== ${context.paint('bold', process.type)}: ${oneLine(process.command)} (${process.instances.length} of ${process.quantity})\n`;
      const rows = process.instances.map((instance) => [
        instance.name,
        context.paint(stateStyles[instance.state], instance.state),
        `v${instance.release_version}`,
        `started ${relativeTime(instance.started_at, context.now())}`,
        instance.restarts === 0 ? '' : `${instance.restarts} restarts`,
      ]);
      return heading + table(rows);
    });
    context.print(text.join('\n'), data);
  },
});

/** Nothing runs before a release was live: what became of the newest one. */
async function describeWithoutProcesses(context: Context, app: string): Promise<string> {
  const query = { limit: 1 };
  const deploys = (await context.api()).GET('/v1/apps/{id}/deploys', { params: { path: { id: app }, query } });
  const [newest] = (await answerOf(deploys)).data;
  if (newest === undefined) return `${app} has no processes, because it has no release. Push with \`git push paas main\`.`;
  const name = `v${newest.version}`;
  if (newest.status === 'pending' || newest.status === 'rolling')
    return `${app} has no processes yet: ${name} is being deployed.`;
  const why = newest.error === null ? '' : `: ${oneLine(newest.error)}`;
  return `${app} has no processes, because no release has gone live. ${name} failed${why}\nFix it and push again, or try the same release again with \`paas restart\`.`;
}

export const psScale = defineCommand({
  name: 'ps:scale',
  aliases: ['scale'],
  group: 'Processes',
  summary: 'scale process types',
  args: { quantities: { kind: 'many', summary: 'TYPE=NUMBER, for example web=2 worker=1' } },
  flags: appFlags,
  examples: ['paas ps:scale web=2 worker=1'],
  async run(context, { args, flags }) {
    const wanted = args.quantities.map(parseQuantity);
    const app = await context.appName(flags);
    const api = await context.api();
    const scaled = [];
    for (const { type, quantity } of wanted) {
      const call = api.PATCH('/v1/apps/{id}/processes/{type}', { params: { path: { id: app, type } }, body: { quantity } });
      scaled.push((await context.showProgress(`Scaling ${type} of ${app} to ${quantity}`, answerOf(call))).data);
    }
    context.print('', scaled);
  },
});

export const restart = defineCommand({
  name: 'restart',
  aliases: ['ps:restart'],
  group: 'Processes',
  summary: 'restart the app without losing a request',
  args: {},
  flags: appFlags,
  async run(context, { flags }) {
    const app = await context.appName(flags);
    const api = await context.api();
    const { data } = await context.showProgress(
      `Restarting ${app}`,
      answerOf(api.POST('/v1/apps/{id}/restart', { params: { path: { id: app } } })),
      ({ data: { processes } }) => `started (${processes.join(', ')})`,
    );
    context.print('', data);
  },
});

function parseQuantity(text: string): { type: string; quantity: number } {
  const match = /^([A-Za-z0-9_-]+)=(\d{1,4})$/.exec(text);
  if (match?.[1] === undefined)
    throw usageError('A quantity must have the form TYPE=NUMBER.', 'Example: paas ps:scale web=2 worker=1');
  return { type: match[1], quantity: Number(match[2]) };
}
