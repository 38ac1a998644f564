import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import { usageError } from '#cli/errors/cli-error.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { sparkline } from '#cli/output/sparkline.ts';
import { table } from '#cli/output/table.ts';
import { answerOf } from '#shared/api-client/client.ts';
import type { components } from '#shared/api-client/openapi-types.ts';

type Kind = components['schemas']['MetricSeries']['name'];

/** As far as it is shown. */
interface Series {
  readonly unit: string;
  readonly stepSeconds: number;
  /** Time in milliseconds, and value. */
  readonly points: readonly (readonly [ts: number, value: number])[];
}

const kinds = ['cpu', 'memory', 'requests', 'errors', 'latency'] as const satisfies readonly Kind[];
const columns = 48;

export const metrics = defineCommand({
  name: 'metrics',
  group: 'Processes',
  summary: 'what the app uses and how it answers, over time',
  args: { kind: { kind: 'optional', summary: `one of ${kinds.join(', ')} (default: all)` } },
  flags: {
    ...appFlags,
    range: { kind: 'string', value: 'TIME', summary: 'up to now, from 1m to 30d (default: 1h)' },
  },
  examples: ['paas metrics', 'paas metrics latency --range 7d'],
  async run(context, { args, flags }) {
    const kind = kinds.find((each) => each === args.kind);
    if (args.kind !== undefined && kind === undefined) {
      throw usageError(`There is no metric ${oneLine(args.kind)}.`, `There are: ${kinds.join(', ')}`);
    }
    const query = {
      ...(kind === undefined ? {} : { kind }),
      ...(flags.range === undefined ? {} : { range: flags.range }),
    };
    const app = await context.appName(flags);
    const { data } = await answerOf((await context.api()).GET('/v1/apps/{id}/metrics', { params: { path: { id: app }, query } }));
    const measured = data.filter((series) => series.points.length > 0);
    if (measured.length === 0) context.talk(`Nothing of ${app} was measured in that time. What runs says \`paas ps\`.`);
    const rows = measured.map(({ name, labels, unit, step_seconds, points }) => {
      const series: Series = {
        unit,
        stepSeconds: step_seconds,
        points: points.map(([ts, value]) => [new Date(ts ?? 0).getTime(), Number(value)]),
      };
      const title = oneLine([name, labels['statistic']].filter((part) => part !== undefined).join(' '));
      return [oneLine(labels['process'] ?? ''), title, context.paint('cyan', drawSeries(series)), describeSeries(series)];
    });
    context.print(table(rows), data);
  },
});

function isCount(series: Series): boolean {
  return series.unit === 'requests';
}

function drawSeries(series: Series): string {
  return sparkline(series.points, series.stepSeconds * 1000, columns, isCount(series) ? 'sum' : 'highest');
}

/** '201 in all' of what is counted, 'now 61 MiB, at most 84 MiB' of what is measured. */
export function describeSeries(series: Series): string {
  const values = series.points.map(([, value]) => value);
  if (isCount(series)) return `${values.reduce((sum, value) => sum + value, 0)} in all`;
  return `now ${amount(values.at(-1) ?? 0, series.unit)}, at most ${amount(Math.max(...values), series.unit)}`;
}

function amount(value: number, unit: string): string {
  if (unit === 'bytes') return `${Math.round(value / 1024 / 1024)} MiB`;
  if (unit === 'milliseconds') return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
  return `${value.toFixed(2)} ${unit}`;
}
