/**
 * Takes over what an app's instances write: each writes straight into raw files of its own, which need nobody at the other
 * end; this stamps the lines and appends them to the journal. While the control plane is away the raw files just grow.
 */
import { spawn } from 'node:child_process';
import { type FSWatcher, watch } from 'node:fs';
import { mkdir, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import { instanceName, parseInstanceKey } from '../processes/instance-key.ts';
import { type Journal, type JournalEntry, openJournal, readRange } from './app-logs-journal.ts';
import { longestLineBytes, splitLines } from './line-splitter.ts';

export interface AppLogCollector {
  readonly journal: Journal;
  /** Creates the raw files of an instance, opened for appending, and begins to take them over. The caller closes them. */
  openOutput(key: string): Promise<{ stdout: number; stderr: number; close(): Promise<void> }>;
  /** Begins to take over the raw files of an instance found again. */
  adoptOutput(key: string): void;
  /** Takes over everything written so far; with `final` also a last line without newline. */
  flush(final?: string): Promise<void>;
  /** Takes over the rest and deletes the raw files. */
  closeOutput(key: string): Promise<void>;
  say(message: string, releaseVersion?: number): Promise<void>;
  /** Resolves at the next append or `close`. */
  nextAppend(signal: AbortSignal): Promise<void>;
  readonly closed: boolean;
  close(): Promise<void>;
}

interface Tail {
  key: string;
  stream: 'o' | 'e';
  /** Raw bytes below this are given back to the file system already. */
  punched: number;
}

const chunkBytes = 256 * 1024;
/** Give back disk space in steps of this size. */
const punchBytes = 4 * 1024 * 1024;
/** More than this not yet taken over is skipped: an app must not fill the disk with what nobody will read. */
const backlogBytes = 64 * 1024 * 1024;
/** The kernel's notices can overflow; this finds what they missed. */
const sweepMilliseconds = 2000;
/**
 * How far a file's modification time may be behind the clock at the moment of the write. The kernel takes it from a clock that
 * advances in ticks of up to 10 ms and that loses a few of them on a loaded virtual machine.
 */
const fileTimeLagMilliseconds = 100;

export async function openAppLogCollector(directory: string, clock: Clock, log: Log): Promise<AppLogCollector> {
  const rawDir = join(directory, 'raw');
  await mkdir(rawDir, { recursive: true, mode: 0o700 });
  const journal = await openJournal(directory);
  const tails = new Map<string, Tail>();
  let waiting: (() => void)[] = [];
  let closed = false;
  let watcher: FSWatcher | undefined;
  let sweep: NodeJS.Timeout | undefined;
  /** Every use of the journal's end goes through this chain, one after the other. */
  let chain: Promise<unknown> = Promise.resolve();
  let scheduled = false;

  function serially<T>(work: () => Promise<T>): Promise<T> {
    const result = chain.then(work);
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

  /** Takes over what one raw file holds by now. */
  async function drain(tail: Tail, final: boolean): Promise<void> {
    const rawName = `${tail.key}.${tail.stream}`;
    const path = join(rawDir, rawName);
    const identity = parseInstanceKey(tail.key);
    if (identity === undefined) return;
    for (;;) {
      const facts = await stat(path).catch(() => undefined);
      if (facts === undefined) return;
      let from = journal.takenOver(rawName);
      // Shorter than before: the app opened /dev/stdout itself and truncated it.
      if (facts.size < from) from = 0;
      const entry = { p: instanceName(identity), s: tail.stream, v: identity.releaseVersion, k: tail.key };
      const t = Math.max(journal.newest.t, writtenBy(facts.mtimeMs, clock.now()));
      if (facts.size - from > backlogBytes) {
        const skipped = facts.size - from - chunkBytes;
        from += skipped;
        await append([{ ...entry, t, m: `… ${skipped} bytes of output skipped: more than can be kept up with`, o: from }]);
      }
      if (facts.size === from) return;
      const chunk = await readRange(path, from, Math.min(chunkBytes, facts.size - from));
      const lines = splitLines(chunk, final && from + chunk.length === facts.size);
      await append(lines.map(({ text, end }) => ({ ...entry, t, m: text, o: from + end })));
      await punch(tail, path, journal.takenOver(rawName));
      if (lines.length === 0 || chunk.length < chunkBytes - longestLineBytes) return;
    }
  }

  /** Offsets go on counting; only the space goes back. */
  async function punch(tail: Tail, path: string, takenOver: number): Promise<void> {
    if (takenOver - tail.punched < punchBytes) return;
    await journal.sync();
    const length = String(takenOver - tail.punched);
    const tool = spawn('fallocate', ['--punch-hole', '--offset', String(tail.punched), '--length', length, path], {
      stdio: 'ignore',
    });
    const warn = (why: unknown): void =>
      log.warn('the space of raw app output is not given back to the file system', { path, error: why });
    tool.once('error', warn);
    tool.once('exit', (code) => code === 0 || warn(`fallocate exited with ${code}`));
    tail.punched = takenOver;
  }

  async function drainAll(final?: string): Promise<void> {
    if (closed) return;
    for (const tail of tails.values()) {
      try {
        await drain(tail, tail.key === final);
      } catch (error) {
        log.error('app output could not be taken over', { key: tail.key, error });
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
      if (!tails.has(rawName)) tails.set(rawName, { key, stream, punched: journal.takenOver(rawName) });
    }
    if (watcher !== undefined) return;
    watcher = watch(rawDir, { persistent: false }, schedule);
    watcher.on('error', (error) => log.warn('app output is not watched', { error }));
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
      // An app that opens /dev/stdout itself needs the right to write as its own user. The path leads through a
      // directory of mode 700, so nobody else gets here.
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
    say: (message, releaseVersion) =>
      serially(async () => {
        // What the app wrote before belongs before it.
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
