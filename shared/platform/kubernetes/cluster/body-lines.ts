import type { Response } from 'undici';

/**
 * The lines of an answer as they arrive; what follows the last newline is the return value. Not by `node:readline`: it reports
 * that a request was aborted as an `error` event, which ends the process when nobody reads the lines any more.
 * @param longest characters after which a line is cut into several
 */
export async function* bodyLines(
  body: NonNullable<Response['body']>,
  longest = Number.POSITIVE_INFINITY,
): AsyncGenerator<string, string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    // At the same places each time that the same text is read.
    for (; rest.length > longest; rest = rest.slice(longest)) yield rest.slice(0, longest);
  }
  return rest;
}
