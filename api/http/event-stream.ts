import type { ApiContext } from '#api/http/api-env.ts';

/** Server-sent event; `data` is sent as one line of JSON. */
export interface StreamEvent {
  id?: string;
  event?: string;
  data: unknown;
}

/** As long as an access token lives: who was locked out meanwhile stops reading at the latest then. */
const longestSeconds = 3600;
/** Below the idle time-outs of proxies on the way. */
const heartbeatSeconds = 15;

export function wantsEvents(c: ApiContext): boolean {
  const accepted = c.req.header('accept') ?? '';
  return accepted.split(',').some((type) => type.split(';')[0]?.trim().toLowerCase() === 'text/event-stream');
}

/**
 * Streams what `open` gives until it ends, the client goes away or an hour is over. What `open` itself throws is an
 * ordinary refusal; an error after that is sent as an event `error` whose data is the envelope.
 */
export async function streamEvents(
  c: ApiContext,
  open: (signal: AbortSignal) => Promise<AsyncIterable<StreamEvent>>,
): Promise<Response> {
  const gone = new AbortController();
  const signal = AbortSignal.any([c.req.raw.signal, gone.signal, AbortSignal.timeout(longestSeconds * 1000)]);
  if (c.req.method === 'HEAD') gone.abort();
  const events = (await open(signal))[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  let pending: Promise<IteratorResult<StreamEvent>> | undefined;

  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(encoder.encode(': connected\n\n'));
    },
    async pull(controller) {
      try {
        pending ??= events.next();
        const result = await Promise.race([pending, heartbeat(pending)]);
        if (result === 'heartbeat') return controller.enqueue(encoder.encode(':\n\n'));
        pending = undefined;
        if (result.done === true) return controller.close();
        controller.enqueue(encoder.encode(encodeEvent(result.value)));
      } catch (error) {
        if (!signal.aborted)
          controller.enqueue(encoder.encode(encodeEvent({ event: 'error', data: c.get('refuse')(error).body })));
        controller.close();
      }
    },
    async cancel() {
      gone.abort();
      await events.return?.();
    },
  });
  return new Response(body, {
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
  });
}

function heartbeat(until: Promise<unknown>): Promise<'heartbeat'> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve('heartbeat'), heartbeatSeconds * 1000);
    const clear = (): void => clearTimeout(timer);
    until.then(clear, clear);
  });
}

function encodeEvent({ id, event, data }: StreamEvent): string {
  return `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;
}
