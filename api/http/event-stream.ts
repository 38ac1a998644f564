import { streamSSE } from 'hono/streaming';
import type { ApiContext } from '#api/http/api-env.ts';
import type { StreamLimits } from '#api/http/stream-limits.ts';
import { secondsPerHour } from '#shared/durations.ts';
import { AppError } from '#shared/errors.ts';

/** A server-sent event. `data` is sent as one line of JSON. */
export interface StreamEvent {
  id?: string;
  event?: string;
  data: unknown;
}

/** As long as an access token lives. */
const longestSeconds = secondsPerHour;
/** How often it is checked that the caller may still read. */
const checkSeconds = 30;
/** Below the idle time-outs of proxies. */
const heartbeatSeconds = 15;

/** Whether the header `Accept` names `text/event-stream`. */
export function wantsEvents(c: ApiContext): boolean {
  const accepted = c.req.header('accept') ?? '';
  return accepted.split(',').some((type) => type.split(';')[0]?.trim().toLowerCase() === 'text/event-stream');
}

/** What a stream reads. */
export interface EventSource {
  /** Counts the stream while it is open. */
  streams: StreamLimits;
  /** @param signal is aborted when nobody reads any more */
  open(signal: AbortSignal): Promise<AsyncIterable<StreamEvent>>;
  /** @throws AppError when the caller may no longer read: their session has ended, or they have left the team */
  check(): Promise<unknown>;
}

/**
 * Streams events until they end, the client goes away, the caller may no longer read, or an hour is over. An error that `open`
 * throws is an ordinary refusal. An error after that is sent as an event `error` whose data is the error envelope.
 * @throws AppError `rate_limited` when the caller has too many streams
 */
export async function streamEvents(c: ApiContext, { streams, open, check }: EventSource): Promise<Response> {
  const release = streams.take(c.get('caller').userId);
  const gone = new AbortController();
  const signal = AbortSignal.any([c.req.raw.signal, gone.signal, AbortSignal.timeout(longestSeconds * 1000)]);
  if (c.req.method === 'HEAD') gone.abort();
  const events = await open(signal).catch((error: unknown) => {
    release();
    throw error;
  });
  const response = streamSSE(c, async (stream) => {
    if (signal.aborted) return release();
    stream.onAbort(() => gone.abort());
    signal.addEventListener('abort', () => stream.abort());
    const heartbeat = setInterval(() => void stream.write(':\n\n'), heartbeatSeconds * 1000);
    // The client connects again, and is told the reason.
    const checks = setInterval(() => void endIfRefused(check, gone), checkSeconds * 1000);
    try {
      await stream.write(': connected\n\n');
      for await (const { data, ...event } of events) {
        // An aborted stream takes everything at once and drops it.
        if (stream.aborted) break;
        await stream.writeSSE({ ...event, data: JSON.stringify(data) });
      }
    } catch (error) {
      // Left to streamSSE, the client would read the message of the error.
      if (!signal.aborted) await stream.writeSSE({ event: 'error', data: JSON.stringify(c.get('refuse')(error).body) });
    } finally {
      clearInterval(heartbeat);
      clearInterval(checks);
      release();
    }
  });
  response.headers.set('cache-control', 'no-store');
  response.headers.set('x-accel-buffering', 'no');
  // They belong to one connection, which the server knows and this room does not.
  response.headers.delete('connection');
  response.headers.delete('transfer-encoding');
  return response;
}

/** A check that fails for another reason, such as an outage of the database, ends nothing. */
async function endIfRefused(check: EventSource['check'], gone: AbortController): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (error instanceof AppError && ['unauthorized', 'forbidden', 'not_found'].includes(error.code)) gone.abort();
  }
}
