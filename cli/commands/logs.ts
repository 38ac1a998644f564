import { appFlags, defineCommand } from '#cli/command-line/command.ts';
import type { Context } from '#cli/context/context.ts';
import { usageError } from '#cli/errors/cli-error.ts';
import type { Style } from '#cli/output/paint.ts';
import { answerOf } from '#shared/api-client/client.ts';
import { follow } from '#shared/api-client/follow.ts';
import type { components } from '#shared/api-client/openapi-types.ts';
import { secondsPerDay, secondsPerHour, secondsPerMinute } from '#shared/durations.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

type LogEntry = components['schemas']['LogEntry'];

const defaultLines = 100;
const processStyles: readonly Style[] = ['cyan', 'green', 'magenta', 'blue', 'yellow'];

export const logs = defineCommand({
  name: 'logs',
  group: 'Logs',
  summary: 'show the logs of the app',
  args: {},
  flags: {
    ...appFlags,
    num: { kind: 'integer', short: 'n', value: 'NUMBER', summary: `number of lines (default: ${defaultLines})` },
    tail: { kind: 'boolean', short: 't', summary: 'follow the logs until Ctrl-C' },
    process: {
      kind: 'string',
      short: 'p',
      value: 'NAME',
      summary: 'only of a process type (web), an instance (web.1) or the platform (paas)',
    },
    release: { kind: 'string', value: 'VERSION', summary: 'only of a release, for example v7' },
    since: { kind: 'string', value: 'TIME', summary: 'only after a time: 30s, 15min, 2h, 7d, or ISO 8601' },
  },
  examples: ['paas logs -t', 'paas logs -p worker -n 500', 'paas logs --release v7'],
  async run(context, { flags }) {
    const query = omitUndefined({
      lines: flags.num ?? defaultLines,
      process: flags.process,
      release: flags.release === undefined ? undefined : parseVersion(flags.release),
      since: flags.since === undefined ? undefined : parseSince(flags.since, context.now()),
    });
    const app = await context.appName(flags);
    if (flags.tail) {
      await followLogs(context, app, query);
      return;
    }
    const { data } = await answerOf((await context.api()).GET('/v1/apps/{id}/logs', { params: { path: { id: app }, query } }));
    if (data.length === 0) context.report('There are no logs. `paas ps` shows processes, `paas builds` shows builds.');
    for (const entry of data) printEntry(context, entry);
  },
});

interface LogQuery {
  readonly lines: number;
  readonly process?: string;
  readonly release?: string;
  readonly since?: string;
}

async function followLogs(context: Context, app: string, query: LogQuery): Promise<void> {
  const { host, send } = await context.connection();
  const events = follow({
    host,
    send,
    nextRequest: (lastEventId) => {
      const url = new URL(`${host}/v1/apps/${encodeURIComponent(app)}/logs`);
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
      return new Request(url, { headers: lastEventId === '' ? {} : { 'last-event-id': lastEventId } });
    },
    onLost: () => context.report(context.paintStderr('yellow', 'The connection is lost. Reconnecting.')),
    patienceSeconds: 600,
  });
  for await (const event of events) {
    const entry = parseEntry(event.data);
    if (entry !== undefined) printEntry(context, entry);
  }
}

function printEntry(context: Context, entry: LogEntry): void {
  if (context.json) {
    context.terminal.stdout.write(`${JSON.stringify(entry)}\n`);
    return;
  }
  const label = context.paint(styleOf(entry.process), `${entry.process}:`);
  context.terminal.stdout.write(`${context.paint('dim', entry.ts)} ${label} ${context.logLine(entry.message)}\n`);
}

/** A process always has the same colour. */
function styleOf(process: string): Style {
  if (process === 'paas') return 'bold';
  let sum = 0;
  for (const character of process) sum += character.codePointAt(0) ?? 0;
  return processStyles[sum % processStyles.length] ?? 'cyan';
}

function parseEntry(data: string): LogEntry | undefined {
  const value: unknown = JSON.parse(data);
  return typeof value === 'object' && value !== null && 'ts' in value && 'message' in value ? (value as LogEntry) : undefined;
}

function parseVersion(text: string): string {
  const version = /^v?(\d{1,9})$/.exec(text)?.[1];
  if (version === undefined) throw usageError('--release must be a version, for example v7.', 'List them with `paas releases`.');
  return version;
}

const secondsOfUnit: Readonly<Record<string, number>> = {
  s: 1,
  m: secondsPerMinute,
  min: secondsPerMinute,
  h: secondsPerHour,
  d: secondsPerDay,
};

function parseSince(text: string, now: Date): string {
  const match = /^(\d{1,6})(s|m|min|h|d)$/.exec(text);
  const seconds = match === null ? undefined : Number(match[1]) * (secondsOfUnit[match[2] ?? ''] ?? 1);
  const time = seconds === undefined ? new Date(text) : new Date(now.getTime() - seconds * 1000);
  if (Number.isNaN(time.getTime()))
    throw usageError('--since must be a time span or an ISO 8601 time.', 'Example: 30s, 15min, 2h, 7d or 2026-03-01T12:00:00Z.');
  return time.toISOString();
}
