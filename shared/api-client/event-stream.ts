import { createParser } from 'eventsource-parser';

/** A server-sent event. */
export interface ServerEvent {
  /** 'message' when the server names no type. */
  readonly event: string;
  /** The last id that the server sent, '' before the first. */
  readonly id: string;
  readonly data: string;
}

/** Reads a body of type `text/event-stream` (HTML Living Standard §9.2). An event that the stream breaks off in is left out. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const events: ServerEvent[] = [];
  let lastId = '';
  const parser = createParser({
    onId: (id) => {
      lastId = id;
    },
    onEvent: ({ event = 'message', data }) => {
      events.push({ event, id: lastId, data });
    },
  });
  const decoder = new TextDecoder();
  // Not `for await`: some browsers cannot iterate over a stream.
  const reader = body.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      parser.feed(decoder.decode(part.value, { stream: true }));
      yield* events.splice(0);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
