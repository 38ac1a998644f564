import type { LineSink } from '#shared/platform/builds.ts';
import type { RunOutput } from '#shared/platform/workloads.ts';

/**
 * A run that reports lines, as output that is read. It is aborted when the reader stops. Lines wait in memory for a slow reader, so
 * it is for drivers that get lines only.
 * @param start resolves with the exit code
 */
export async function* followRun(
  start: (line: LineSink, signal: AbortSignal) => Promise<number>,
  signal: AbortSignal,
): AsyncIterable<RunOutput> {
  const stopped = new AbortController();
  const output: RunOutput[] = [];
  let changed = Promise.withResolvers<void>();
  const add = (item: RunOutput): void => {
    output.push(item);
    changed.resolve();
  };
  const line = (text: string): void => add({ stream: 'stdout', bytes: new TextEncoder().encode(`${text}\n`) });
  const ended = start(line, AbortSignal.any([signal, stopped.signal])).then((exitCode) => add({ exitCode }));
  ended.catch(() => changed.resolve());
  try {
    yield { started: true };
    for (;;) {
      await Promise.race([changed.promise, ended]);
      changed = Promise.withResolvers<void>();
      for (const item of output.splice(0)) {
        yield item;
        if ('exitCode' in item) return;
      }
    }
  } finally {
    stopped.abort(new Error('Nobody reads the output any more.'));
  }
}
