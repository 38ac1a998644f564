import { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';

/** So many bytes are sent at once at most; the rest waits in standard input. */
const mostBytes = 512 * 1024;
/** Between two parts, so that typing and long files stay below the limit of requests per minute. */
const pauseMilliseconds = 150;

/**
 * Sends standard input in parts, each with what has arrived since the one before, and null at its end. Ends early when `over` aborts.
 * @throws what `send` throws
 */
export async function sendInput(
  stdin: NodeJS.ReadableStream,
  send: (bytes: Uint8Array | null) => Promise<void>,
  over: AbortSignal,
): Promise<void> {
  let waiting: Buffer[] = [];
  let bytes = 0;
  let ended = false;
  let changed = Promise.withResolvers<void>();
  const onData = (chunk: Buffer | string): void => {
    const part = Buffer.from(chunk as string);
    waiting.push(part);
    bytes += part.length;
    if (bytes >= mostBytes) stdin.pause();
    changed.resolve();
  };
  const onEnd = (): void => {
    ended = true;
    changed.resolve();
  };
  const onOver = (): void => changed.resolve();
  stdin.on('data', onData).on('end', onEnd).on('error', onEnd);
  over.addEventListener('abort', onOver);
  try {
    for (;;) {
      if (bytes === 0 && !ended && !over.aborted) await changed.promise;
      changed = Promise.withResolvers<void>();
      if (over.aborted) return;
      const all = Buffer.concat(waiting);
      waiting = all.length > mostBytes ? [all.subarray(mostBytes)] : [];
      bytes = Math.max(0, all.length - mostBytes);
      const next = setTimeout(pauseMilliseconds, undefined, { signal: over }).catch(() => undefined);
      if (all.length > 0) await send(all.subarray(0, mostBytes));
      if (ended && bytes === 0) return await send(null);
      if (bytes < mostBytes) stdin.resume();
      await next;
    }
  } finally {
    over.removeEventListener('abort', onOver);
    stdin.off('data', onData).off('end', onEnd).off('error', onEnd);
    // Otherwise it would keep this process.
    stdin.pause();
    if (stdin instanceof Readable) stdin.destroy();
  }
}
