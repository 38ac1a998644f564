import { write } from 'node:fs';
import { mkdtemp, readdir, rm, stat, truncate, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { millisecondsPerHour } from '#shared/durations.ts';
import { type AppId, newUuid } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { describeAppLogs } from '#shared/platform/contract/app-logs.ts';
import { newInstanceKey } from '../processes/instance-key.ts';
import { createLocalAppLogs, type LocalAppLogs } from './app-logs.ts';
import { createOutputWriter } from './output/output-writer.ts';

const log = createLog('silent', () => undefined);

function openLogs(workloadsDir: string): LocalAppLogs {
  const writer = createOutputWriter(join(workloadsDir, 'output'), log);
  return createLocalAppLogs({ workloadsDir, writer, clock: systemClock, log });
}

const writeBytes = promisify(write);

/** A program's end of its pipe for stdout. */
interface Printer {
  print(text: string | Uint8Array): Promise<void>;
  close(): void;
}

async function openPrinter(logs: LocalAppLogs, appId: AppId, key: string): Promise<Printer> {
  const files = await (await logs.collectorOf(appId)).openOutput(key);
  return {
    async print(text) {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; ) at += (await writeBytes(files.stdout, bytes, at)).bytesWritten;
    },
    close: files.close,
  };
}

async function print(logs: LocalAppLogs, appId: AppId, key: string, text: string | Uint8Array): Promise<void> {
  const printer = await openPrinter(logs, appId, key);
  await printer.print(text);
  printer.close();
}

describeAppLogs('local', async () => {
  const workloadsDir = await mkdtemp(join(tmpdir(), 'paas-logs-'));
  const logs = openLogs(workloadsDir);
  const keys = new Map<string, string>();
  return {
    logs,
    async print(appId, process, version, lines) {
      const id = `${appId} ${process} ${version}`;
      const [type = '', index = ''] = process.split('.');
      const key = keys.get(id) ?? newInstanceKey(type, Number(index), version);
      keys.set(id, key);
      await print(logs, appId, key, lines.map((line) => `${line}\n`).join(''));
      // The order between processes is that in which they are collected.
      await (await logs.collectorOf(appId)).flush();
    },
    async stop() {
      await logs.stop();
      await rm(workloadsDir, { recursive: true });
    },
  };
});

describe('local app logs', () => {
  let workloadsDir: string;
  let logs: LocalAppLogs;
  const appId = newUuid<AppId>();
  const key = newInstanceKey('web', 1, 3);
  /** Of a program that outlives the control plane. */
  let printer: Printer | undefined;
  const rawDir = (): string => join(workloadsDir, appId, 'logs', 'raw');
  const rawPath = async (): Promise<string> => join(rawDir(), (await readdir(rawDir())).toSorted().at(-1) ?? '');
  const readAll = async (): Promise<string[]> => (await logs.readLogs(appId, { lines: 100_000 })).map(({ message }) => message);
  beforeEach(async () => {
    workloadsDir = await mkdtemp(join(tmpdir(), 'paas-logs-'));
    logs = openLogs(workloadsDir);
  });
  afterEach(async () => {
    printer?.close();
    printer = undefined;
    await logs.stop();
    await rm(workloadsDir, { recursive: true });
  });

  /** Opens the logs as the next control plane does. */
  async function reopen(): Promise<void> {
    await logs.close();
    logs = openLogs(workloadsDir);
    (await logs.collectorOf(appId)).adoptOutput(key);
  }

  it('collects output that was written while no control plane ran, each line once', async () => {
    printer = await openPrinter(logs, appId, key);
    await printer.print('before\n');
    expect(await readAll()).toEqual(['before']);
    await logs.close();
    await printer.print('mean\nwhile\n');
    await reopen();
    await reopen();
    expect(await readAll()).toEqual(['before', 'mean', 'while']);
  });

  it('waits for the end of a line, also over a restart, and returns the rest when the process has ended', async () => {
    printer = await openPrinter(logs, appId, key);
    await printer.print('one\ntw');
    expect(await readAll()).toEqual(['one']);
    await reopen();
    await printer.print('o\nthr');
    expect(await readAll()).toEqual(['one', 'two']);
    await (await logs.collectorOf(appId)).closeOutput(key);
    expect(await readAll()).toEqual(['one', 'two', 'thr']);
    expect(await readdir(rawDir())).toEqual([]);
  });

  it('removes an entry that a crash left half written, and collects it again', async () => {
    await print(logs, appId, key, 'one\ntwo\nthree\n');
    await readAll();
    await logs.close();
    const [segment = ''] = (await readdir(join(workloadsDir, appId, 'logs'))).filter((name) => name.endsWith('.jsonl'));
    const path = join(workloadsDir, appId, 'logs', segment);
    await truncate(path, (await stat(path)).size - 9);
    await reopen();
    expect(await readAll()).toEqual(['one', 'two', 'three']);
  });

  it('splits lines of more than 8 KiB between characters, and replaces invalid UTF-8', async () => {
    const long = `${'é'.repeat(10_000)}\n`;
    await print(logs, appId, key, long);
    const lines = await readAll();
    expect(lines.join('')).toBe('é'.repeat(10_000));
    expect(lines.map((line) => Buffer.byteLength(line)).every((bytes) => bytes <= 8192)).toBe(true);
    await print(logs, appId, key, new Uint8Array([0xff, 0xfe, 0x41, 0x0a]));
    expect((await readAll()).at(-1)).toBe('\ufffd\ufffdA');
  });

  it('retains the newest 50 MiB, and frees the disk space of raw output', { timeout: 60_000 }, async () => {
    const line = `${'x'.repeat(1000)}\n`;
    for (let part = 0; part < 12; part += 1) {
      await print(logs, appId, key, line.repeat(6000));
      await (await logs.collectorOf(appId)).flush();
    }
    await print(logs, appId, key, 'the end\n');
    expect((await logs.readLogs(appId, { lines: 1 }))[0]?.message).toBe('the end');
    const logsDir = join(workloadsDir, appId, 'logs');
    const sizes = await Promise.all(
      (await readdir(logsDir))
        .filter((name) => name.endsWith('.jsonl'))
        .map(async (name) => (await stat(join(logsDir, name))).size),
    );
    const kept = sizes.reduce((sum, size) => sum + size, 0);
    expect(kept).toBeGreaterThan(45 * 1024 * 1024);
    expect(kept).toBeLessThan(53 * 1024 * 1024);
    expect((await readdir(rawDir())).length).toBeLessThanOrEqual(2);
    await reopen();
    await print(logs, appId, key, 'after\n');
    expect((await logs.readLogs(appId, { lines: 2 })).map(({ message }) => message)).toEqual(['the end', 'after']);
  });

  it('gives no line a time before it was written, also where the clock of the file system is behind', async () => {
    await writeWhileAway((writtenAt) => new Date(writtenAt.getTime() - 50));
    expect(await logs.readLogs(appId, { lines: 1, since: away })).toMatchObject([{ message: 'line' }]);
  });

  it('gives output that was written while no control plane ran the time of that write', async () => {
    await writeWhileAway((writtenAt) => new Date(writtenAt.getTime() - millisecondsPerHour));
    const [entry] = await logs.readLogs(appId, { lines: 1 });
    const anHourBefore = away.getTime() - millisecondsPerHour;
    expect(entry?.ts.getTime()).toBeGreaterThanOrEqual(anHourBefore);
    expect(entry?.ts.getTime()).toBeLessThan(anHourBefore + 1000);
  });

  let away: Date;
  /** Writes a line while no control plane runs, and sets the time of its file. */
  async function writeWhileAway(fileTime: (writtenAt: Date) => Date): Promise<void> {
    printer = await openPrinter(logs, appId, key);
    await logs.close();
    away = new Date();
    await printer.print('line\n');
    const other = createOutputWriter(join(workloadsDir, 'output'), log);
    await other.sync(rawDir());
    await other.detach();
    await utimes(await rawPath(), fileTime(away), fileTime(away));
    await reopen();
  }

  it('never goes back in time, also where raw output is collected late', async () => {
    await print(logs, appId, key, 'early\n');
    await logs.appendPlatformLog(appId, 'said later');
    await print(logs, appId, key, 'late\n');
    const entries = await logs.readLogs(appId, { lines: 10 });
    expect(entries.map(({ message }) => message)).toEqual(['early', 'said later', 'late']);
    expect(entries.map(({ ts }) => ts.getTime())).toEqual(entries.map(({ ts }) => ts.getTime()).sort((a, b) => a - b));
  });
});
