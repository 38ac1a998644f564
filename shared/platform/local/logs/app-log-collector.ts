import { spawn } from 'node:child_process';
import { type FSWatcher, watch } from 'node:fs';
import { mkdir, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import { instanceName, parseInstanceKey } from '../processes/instance-key.ts';
import { type Journal, type JournalEntry, openJournal, readRange } from './app-logs-journal.ts';
import { longestLineBytes, splitLines } from './line-splitter.ts';

/**
 * Collects the output of an app's instances. Each instance writes directly into raw files of its own, so that it can write while no
 * control plane runs. The collector appends their lines to the journal, with a time.
 */
export interface AppLogCollector {
  readonly journal: Journal;
  /** Creates the raw files of an instance and collects from them. @returns file descriptors for appending, to be closed */
  openOutput(key: string): Promise<{ stdout: number; stderr: number; close(): Promise<void> }>;
  /** Collects from the raw files of an instance that was found again. */
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

/** A raw file that is collected from. */
interface Tail {
  key: string;
  stream: 'o' | 'e';
  /** Disk space of the bytes below this offset is freed already. */
  punched: number;
}

const chunkBytes = 256 * 1024;
/** Disk space is freed in steps of this size. */
const punchBytes = 4 * 1024 * 1024;
/** Output beyond this that is not collected yet is skipped, so that an app cannot fill the disk. */
const backlogBytes = 64 * 1024 * 1024;
/** The kernel's queue of file events can overflow; this finds the output of lost events. */
const sweepMilliseconds = 2000;
/**
 * How far a file's modification time may be behind the clock at the moment of the write. The kernel takes it from a clock that
 * advances in ticks of up to 10 ms and that loses a few of them on a loaded virtual machine.
 */
const fileTimeLagMilliseconds = 100;

/** @param directory `workloads/<app_id>/logs`; the raw files are in `raw/` */
export async function openAppLogCollector(directory: string, clock: Clock, log: Log): Promise<AppLogCollector> {
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

  /** Collects what one raw file contains now. */
  async function drain(tail: Tail, final: boolean): Promise<void> {
    const rawName = `${tail.key}.${tail.stream}`;
    const path = join(rawDir, rawName);
    const identity = parseInstanceKey(tail.key);
    if (identity === undefined) return;
    for (;;) {
      const facts = await stat(path).catch(() => undefined);
      if (facts === undefined) return;
      let from = journal.collected(rawName);
      // Shorter than before: the app has opened /dev/stdout itself and truncated it.
      if (facts.size < from) from = 0;
      const entry = { p: instanceName(identity), s: tail.stream, v: identity.releaseVersion, k: tail.key };
      const t = Math.max(journal.newest.t, writtenBy(facts.mtimeMs, clock.now()));
      if (facts.size - from > backlogBytes) {
        const skipped = facts.size - from - chunkBytes;
        from += skipped;
        await append([{ ...entry, t, m: `… ${skipped} bytes of output skipped: more than the platform can collect`, o: from }]);
      }
      if (facts.size === from) return;
      const chunk = await readRange(path, from, Math.min(chunkBytes, facts.size - from));
      const lines = splitLines(chunk, final && from + chunk.length === facts.size);
      await append(lines.map(({ text, end }) => ({ ...entry, t, m: text, o: from + end })));
      await punch(tail, path, journal.collected(rawName));
      if (lines.length === 0 || chunk.length < chunkBytes - longestLineBytes) return;
    }
  }

  /** Frees the disk space of collected bytes. The file's size and offsets stay. */
  async function punch(tail: Tail, path: string, collected: number): Promise<void> {
    if (collected - tail.punched < punchBytes) return;
    await journal.sync();
    const length = String(collected - tail.punched);
    const tool = spawn('fallocate', ['--punch-hole', '--offset', String(tail.punched), '--length', length, path], {
      stdio: 'ignore',
    });
    const warn = (why: unknown): void =>
      log.warn('the disk space of collected app output could not be freed', { path, error: why });
    tool.once('error', warn);
    tool.once('exit', (code) => code === 0 || warn(`fallocate exited with ${code}`));
    tail.punched = collected;
  }

  async function drainAll(final?: string): Promise<void> {
    if (closed) return;
    for (const tail of tails.values()) {
      try {
        await drain(tail, tail.key === final);
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
      if (!tails.has(rawName)) tails.set(rawName, { key, stream, punched: journal.collected(rawName) });
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
      // An app that opens /dev/stdout itself needs write permission for its own user. Other users cannot enter the directory, which
      // has mode 700.
      const files = await Promise.all(['o', 'e'].map((stream) => open(join(rawDir, `${key}.${stream}`), 'a', 0o622)));
      await Promise.all(files.map((file) => file.chmod(0o622)));
      track(key);
      const [stdout, stderr] = files.map((file) => file.fd);
      if (stdout === undefined || stderr === undefined) throw new Error('two files were opened');
      return { stdout, stderr, close: async () => void (await Promise.all(files.map((file) => file.close()))) };
    },
    adoptOutput(key) {
      track(key);
      schedule();
    },
    flush: (final) => serially(() => drainAll(final)),
    closeOutput: (key) =>
      serially(async () => {
        await drainAll(key);
        untrack(key);
        for (const stream of ['o', 'e']) {
          await rm(join(rawDir, `${key}.${stream}`), { force: true });
          journal.forget(`${key}.${stream}`);
        }
      }),
    appendPlatformLine: (message, releaseVersion) =>
      serially(async () => {
        // Output that was written before comes before it.
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
