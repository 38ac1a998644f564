import type { Context } from '#cli/context/context.ts';
import { follow } from '#shared/api-client/follow.ts';

/** How long a build's log may be out of reach before following it is given up. */
const patienceSeconds = 120;

/** Prints a build's log from its first line to the last there will be, each once, however often the connection breaks. */
export async function printBuildLog(context: Context, app: string, buildId: string): Promise<void> {
  const { host, send } = await context.connection();
  const url = `${host}/v1/apps/${encodeURIComponent(app)}/builds/${buildId}/logs`;
  const events = follow({
    host,
    send,
    nextRequest: (lastEventId) => new Request(url, { headers: lastEventId === '' ? {} : { 'last-event-id': lastEventId } }),
    onLost: () => context.talk(context.paintTalk('yellow', 'The connection broke; trying again.')),
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
