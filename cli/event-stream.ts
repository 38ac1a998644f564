/** One server-sent event. */
export interface ServerEvent {
  readonly event: string;
  /** As the server gave it last, '' when it never did. */
  readonly id: string;
  readonly data: string;
}

/** Reads `text/event-stream` as the HTML standard says: any line ending, comments and unknown fields skipped. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  let event = '';
  let id = '';
  let data: string[] = [];
  for await (const line of readLines(body)) {
    if (line === '') {
      if (data.length > 0) yield { event: event === '' ? 'message' : event, id, data: data.join('\n') };
      event = '';
      data = [];
      continue;
    }
    const { field, value } = splitField(line);
    if (field === 'event') event = value;
    if (field === 'data') data.push(value);
    if (field === 'id' && !value.includes('\0')) id = value;
  }
}

function splitField(line: string): { field: string; value: string } {
  const colon = line.indexOf(':');
  if (colon === -1) return { field: line, value: '' };
  return { field: line.slice(0, colon), value: line.slice(colon + 1).replace(/^ /, '') };
}

/** An unfinished last line is not an event: it is left out, and asked for again after the reconnect. */
async function* readLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    // A CR at the very end may be half of a CRLF: it waits for what follows.
    const parts = rest.split(/\r\n|\n|\r(?!$)/);
    rest = parts.pop() ?? '';
    yield* parts;
  }
}
