import type { Context } from '#cli/context/context.ts';
import { follow } from '#shared/api-client/follow.ts';

/** Gives up after this time without a connection. */
const patienceSeconds = 120;

/** Prints the log of a build and follows it until the build and its deploy are over. Each line is printed once, also after a lost connection. */
export async function printBuildLog(context: Context, app: string, buildId: string): Promise<void> {
  const { host, send } = await context.connection();
  const url = `${host}/v1/apps/${encodeURIComponent(app)}/builds/${buildId}/logs`;
  const events = follow({
    host,
    send,
    nextRequest: (lastEventId) => new Request(url, { headers: lastEventId === '' ? {} : { 'last-event-id': lastEventId } }),
    onLost: () => context.report(context.paintStderr('yellow', 'The connection is lost. Reconnecting.')),
    patienceSeconds,
  });
  for await (const { event, data } of events) {
    if (event === 'end') return;
    context.terminal.stdout.write(`${context.json ? data : context.logLine(lineOf(data))}\n`);
  }
}

function lineOf(data: string): string {
  const value: unknown = JSON.parse(data);
  return typeof value === 'object' && value !== null && 'line' in value && typeof value.line === 'string' ? value.line : '';
}
