import type { LineSink } from '#shared/platform/builds.ts';
import { createLineSplitter } from './line-splitter.ts';

/** Of the time of this thread, for one stream, once it has used up the start. */
const share = 0.2;
/** For each stream. Few programs print so much. */
const startMilliseconds = 1000;

/**
 * Reads the lines that a program prints until it closes the stream. A program that prints without end is read slower and slower, until it
 * waits for this thread and not the other way round. Nothing is left out.
 */
export async function readLines(stream: AsyncIterable<Uint8Array> | undefined, line: LineSink): Promise<void> {
  if (stream === undefined) return;
  const splitter = createLineSplitter(line);
  let free = startMilliseconds;
  for await (const chunk of stream) {
    const begun = performance.now();
    splitter.push(chunk);
    const spent = performance.now() - begun;
    free -= spent;
    if (free < 0) await new Promise((resolve) => setTimeout(resolve, spent * (1 / share - 1)));
  }
  splitter.end();
}
