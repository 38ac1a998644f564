import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import { usageError } from '#cli/errors/cli-error.ts';
import { oneLine } from '#cli/output/sanitize.ts';
import { sparkline } from '#cli/output/sparkline.ts';
import { table } from '#cli/output/table.ts';
import { answerOf } from '#shared/api-client/client.ts';
import type { components } from '#shared/api-client/openapi-types.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

type Kind = components['schemas']['MetricSeries']['name'];

/** The fields of a series that are shown. */
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
  summary: 'show metrics of the app',
  args: { kind: { kind: 'optional', summary: `${kinds.slice(0, -1).join(', ')} or ${kinds.at(-1)} (default: all)` } },
  flags: {
    ...appFlags,
    range: { kind: 'string', value: 'TIME', summary: 'time span up to now, from 1m to 30d (default: 1h)' },
  },
  examples: ['paas metrics', 'paas metrics latency --range 7d'],
  async run(context, { args, flags }) {
    const kind = kinds.find((each) => each === args.kind);
    if (args.kind !== undefined && kind === undefined) {
      throw usageError(`Unknown metric ${oneLine(args.kind)}.`, `Metrics are ${kinds.join(', ')}.`);
    }
    const query = omitUndefined({ kind, range: flags.range });
    const app = await context.appName(flags);
    const { data } = await answerOf((await context.api()).GET('/v1/apps/{id}/metrics', { params: { path: { id: app }, query } }));
    const measured = data.filter((series) => series.points.length > 0);
    if (measured.length === 0) context.report(`${app} has no metrics for this time. \`paas ps\` shows its processes.`);
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

/** '201 in total' for counts, 'now 61 MiB, maximum 84 MiB' for measurements. */
export function describeSeries(series: Series): string {
  const values = series.points.map(([, value]) => value);
  if (isCount(series)) return `${values.reduce((sum, value) => sum + value, 0)} in total`;
  return `now ${amount(values.at(-1) ?? 0, series.unit)}, maximum ${amount(Math.max(...values), series.unit)}`;
}

function amount(value: number, unit: string): string {
  if (unit === 'bytes') return `${Math.round(value / 1024 / 1024)} MiB`;
  if (unit === 'milliseconds') return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
  return `${value.toFixed(2)} ${unit}`;
}
