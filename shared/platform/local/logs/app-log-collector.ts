import { type FSWatcher, watch } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import { limits } from '#shared/limits.ts';
import type { Log } from '#shared/log.ts';
import { instanceName, parseInstanceKey } from '../processes/instance-key.ts';
import { type Journal, type JournalEntry, openJournal } from './app-logs-journal.ts';
import { longestLineBytes, splitLines } from './line-splitter.ts';
import { listSegments, listStream, type OutputSegment, readStream } from './output/output-segments.ts';
import type { OutputEnd, OutputWriter } from './output/output-writer.ts';

/**
 * Collects the output of an app's instances. Each instance writes to pipes of its own, which another process copies into raw files of
 * a limited size, also while no control plane runs. The collector appends their lines to the journal, with a time.
 */
export interface AppLogCollector {
  readonly journal: Journal;
  /** Creates the pipes of an instance and collects from them. @returns file descriptors to write to, to be closed */
  openOutput(key: string): Promise<{ stdout: number; stderr: number; close(): void }>;
  /** Collects the output of an instance that was found again. */
  adoptOutput(key: string): void;
  /** Collects everything written so far. @param final key of an instance that has ended: also a last line without newline */
  flush(final?: string): Promise<void>;
  /** Collects the rest and deletes the raw files. */
  closeOutput(key: string): Promise<void>;
  /** Appends a line of the platform's own. @param releaseVersion by default that of the line before */
  appendPlatformLine(message: string, releaseVersion?: number): Promise<void>;
  /** Resolves at the next append, at `close`, or when the signal aborts. */
  nextAppend(signal: AbortSignal): Promise<void>;
  readonly closed: boolean;
  close(): Promise<void>;
}

/** A stream of raw output that is collected from. */
interface Tail {
  key: string;
  stream: 'o' | 'e';
}

const chunkBytes = 256 * 1024;
/** The kernel's queue of file events can overflow; this finds the output of lost events. */
const sweepMilliseconds = 2000;
/**
 * How far a file's modification time may be behind the clock at the moment of the write. The kernel takes it from a clock that
 * advances in ticks of up to 10 ms and that loses a few of them on a loaded virtual machine.
 */
const fileTimeLagMilliseconds = 100;

/** What collecting the output of an app needs. */
export interface AppLogCollectorOptions {
  /** `workloads/<app_id>/logs`; the raw files are in `raw/`. */
  directory: string;
  writer: OutputWriter;
  clock: Clock;
  log: Log;
}

/** Opens the collector of a data directory. */
export async function openAppLogCollector({ directory, writer, clock, log }: AppLogCollectorOptions): Promise<AppLogCollector> {
  const rawDir = join(directory, 'raw');
  await mkdir(rawDir, { recursive: true, mode: 0o700 });
  const journal = await openJournal(directory);
  const tails = new Map<string, Tail>();
  let waiting: (() => void)[] = [];
  let closed = false;
  let watcher: FSWatcher | undefined;
  let sweep: NodeJS.Timeout | undefined;
  /** All that reads or moves the journal's end runs in this chain, one after the other. */
  let chain: Promise<unknown> = Promise.resolve();
  let scheduled = false;

  function serially<T>(task: () => Promise<T>): Promise<T> {
    const result = chain.then(task);
    chain = result.catch(() => undefined);
    return result;
  }

  function wake(): void {
    const woken = waiting;
    waiting = [];
    for (const resolve of woken) resolve();
  }

  async function append(entries: readonly JournalEntry[]): Promise<void> {
    if (entries.length === 0 || closed) return;
    await journal.append(entries);
    wake();
  }

  /** Collects what the raw files of one stream contain now. */
  async function drain(tail: Tail, segments: readonly OutputSegment[], final: boolean): Promise<void> {
    const rawName = `${tail.key}.${tail.stream}`;
    const identity = parseInstanceKey(tail.key);
    if (identity === undefined) return;
    const entry = { p: instanceName(identity), s: tail.stream, v: identity.releaseVersion, k: tail.key };
    for (;;) {
      const from = journal.collected(rawName);
      const piece = await readStream(segments, from, chunkBytes);
      if (piece === undefined) return;
      const t = Math.max(journal.newest.t, writtenBy(piece.modified, clock.now()));
      if (piece.start > from) {
        const skipped = piece.start - from;
        await append([
          { ...entry, t, m: `… ${skipped} bytes of output skipped: more than the platform can collect`, o: piece.start },
        ]);
      }
      const complete = piece.bytes.length === chunkBytes;
      const lines = splitLines(piece.bytes, final && !complete);
      await append(lines.map(({ text, end }) => ({ ...entry, t, m: text, o: piece.start + end })));
      if (lines.length === 0 || piece.bytes.length < chunkBytes - longestLineBytes) return;
    }
  }

  /** Deletes the raw files that were collected completely. The newest stays: it is still written to. */
  async function deleteCollected(rawName: string, segments: readonly OutputSegment[]): Promise<void> {
    const collected = journal.collected(rawName);
    const done = segments.filter((_, at) => (segments[at + 1]?.start ?? Number.POSITIVE_INFINITY) <= collected);
    if (done.length === 0) return;
    await journal.sync();
    for (const { path } of done) await rm(path, { force: true });
  }

  /** Has what is in the pipes written to the raw files. */
  async function sync(): Promise<void> {
    if (tails.size === 0) return;
    await writer.sync(rawDir).catch((error: unknown) => log.warn('the newest output of an app cannot be read yet', { error }));
  }

  async function drainAll(final?: string): Promise<void> {
    if (closed) return;
    const streams = await listSegments(rawDir);
    for (const [rawName, tail] of tails) {
      try {
        const segments = streams.get(rawName) ?? [];
        await drain(tail, segments, tail.key === final);
        await deleteCollected(rawName, segments);
      } catch (error) {
        log.error('app output could not be collected', { key: tail.key, error });
      }
    }
  }

  function schedule(): void {
    if (scheduled || closed) return;
    scheduled = true;
    void serially(() => {
      scheduled = false;
      return drainAll();
    });
  }

  function track(key: string): void {
    for (const stream of ['o', 'e'] as const) {
      const rawName = `${key}.${stream}`;
      if (!tails.has(rawName)) tails.set(rawName, { key, stream });
    }
    if (watcher !== undefined) return;
    watcher = watch(rawDir, { persistent: false }, schedule);
    watcher.on('error', (error) => log.warn('app output cannot be watched; it is collected every two seconds', { error }));
    sweep = setInterval(schedule, sweepMilliseconds);
    sweep.unref();
  }

  function untrack(key: string): void {
    tails.delete(`${key}.o`);
    tails.delete(`${key}.e`);
    if (tails.size > 0) return;
    watcher?.close();
    watcher = undefined;
    clearInterval(sweep);
  }

  return {
    journal,
    get closed() {
      return closed;
    },
    async openOutput(key) {
      const ends: OutputEnd[] = [];
      const close = (): void => ends.forEach((end) => end.close());
      try {
        for (const stream of ['o', 'e']) ends.push(await writer.open(join(rawDir, `${key}.${stream}`), limits.app.output));
      } catch (error) {
        close();
        throw error;
      }
      track(key);
      const [stdout, stderr] = ends.map(({ fd }) => fd);
      if (stdout === undefined || stderr === undefined) throw new Error('two streams were opened');
      return { stdout, stderr, close };
    },
    adoptOutput(key) {
      track(key);
      schedule();
    },
    flush: (final) =>
      serially(async () => {
        await sync();
        await drainAll(final);
      }),
    closeOutput: (key) =>
      serially(async () => {
        for (const stream of ['o', 'e']) await writer.close(join(rawDir, `${key}.${stream}`));
        await drainAll(key);
        untrack(key);
        for (const stream of ['o', 'e']) {
          const rawName = `${key}.${stream}`;
          for (const { path } of await listStream(join(rawDir, rawName))) await rm(path, { force: true });
          journal.forget(rawName);
        }
      }),
    appendPlatformLine: (message, releaseVersion) =>
      serially(async () => {
        // Output that was written before comes before it.
        await sync();
        await drainAll();
        const t = Math.max(journal.newest.t, clock.now().getTime());
        await append([{ t, p: 'paas', s: 'p', v: releaseVersion ?? journal.newest.v, m: message }]);
      }),
    nextAppend(signal) {
      return new Promise((resolve) => {
        if (closed || signal.aborted) return resolve();
        const done = (): void => {
          signal.removeEventListener('abort', done);
          resolve();
        };
        signal.addEventListener('abort', done, { once: true });
        waiting.push(done);
      });
    },
    async close() {
      if (closed) return;
      closed = true;
      watcher?.close();
      clearInterval(sweep);
      await serially(() => journal.close());
      wake();
    },
  };
}

/**
 * When the newest bytes of a raw file were written, at the latest. Never earlier than that, or a reader who asks for what was
 * written since a moment would miss lines; for output that waited for a control plane, close to the time of the write.
 * @returns milliseconds since 1970
 */
function writtenBy(modifiedMilliseconds: number, now: Date): number {
  return Math.min(now.getTime(), Math.ceil(modifiedMilliseconds) + fileTimeLagMilliseconds);
}
