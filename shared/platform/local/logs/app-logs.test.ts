import { appendFile, mkdtemp, readdir, rm, stat, truncate, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { millisecondsPerHour } from '#shared/durations.ts';
import { type AppId, newUuid } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { describeAppLogs } from '#shared/platform/contract/app-logs.ts';
import { newInstanceKey } from '../processes/instance-key.ts';
import { createLocalAppLogs, type LocalAppLogs } from './app-logs.ts';

const log = createLog('silent', () => undefined);

function openLogs(workloadsDir: string): LocalAppLogs {
  return createLocalAppLogs({ workloadsDir, clock: systemClock, log });
}

/** Appends to the raw file as a process does. */
async function print(
  logs: LocalAppLogs,
  workloadsDir: string,
  appId: AppId,
  key: string,
  text: string | Uint8Array,
): Promise<void> {
  const files = await (await logs.collectorOf(appId)).openOutput(key);
  await files.close();
  await appendFile(join(workloadsDir, appId, 'logs', 'raw', `${key}.o`), text);
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
      await print(logs, workloadsDir, appId, key, lines.map((line) => `${line}\n`).join(''));
      // The order between processes is that in which they are collected.
      await (await logs.collectorOf(appId)).flush();
    },
    async stop() {
      await logs.close();
      await rm(workloadsDir, { recursive: true });
    },
  };
});

describe('local app logs', () => {
  let workloadsDir: string;
  let logs: LocalAppLogs;
  const appId = newUuid<AppId>();
  const key = newInstanceKey('web', 1, 3);
  const rawPath = (): string => join(workloadsDir, appId, 'logs', 'raw', `${key}.o`);
  const readAll = async (): Promise<string[]> => (await logs.readLogs(appId, { lines: 100_000 })).map(({ message }) => message);
  beforeEach(async () => {
    workloadsDir = await mkdtemp(join(tmpdir(), 'paas-logs-'));
    logs = openLogs(workloadsDir);
  });
  afterEach(async () => {
    await logs.close();
    await rm(workloadsDir, { recursive: true });
  });

  /** Opens the logs as the next control plane does. */
  async function reopen(): Promise<void> {
    await logs.close();
    logs = openLogs(workloadsDir);
    (await logs.collectorOf(appId)).adoptOutput(key);
  }

  it('collects output that was written while no control plane ran, each line once', async () => {
    await print(logs, workloadsDir, appId, key, 'before\n');
    expect(await readAll()).toEqual(['before']);
    await logs.close();
    await appendFile(rawPath(), 'mean\nwhile\n');
    await reopen();
    await reopen();
    expect(await readAll()).toEqual(['before', 'mean', 'while']);
  });

  it('waits for the end of a line, also over a restart, and returns the rest when the process has ended', async () => {
    await print(logs, workloadsDir, appId, key, 'one\ntw');
    expect(await readAll()).toEqual(['one']);
    await reopen();
    await appendFile(rawPath(), 'o\nthr');
    expect(await readAll()).toEqual(['one', 'two']);
    await (await logs.collectorOf(appId)).closeOutput(key);
    expect(await readAll()).toEqual(['one', 'two', 'thr']);
    expect(await readdir(join(workloadsDir, appId, 'logs', 'raw'))).toEqual([]);
  });

  it('removes an entry that a crash left half written, and collects it again', async () => {
    await print(logs, workloadsDir, appId, key, 'one\ntwo\nthree\n');
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
    await print(logs, workloadsDir, appId, key, long);
    const lines = await readAll();
    expect(lines.join('')).toBe('é'.repeat(10_000));
    expect(lines.map((line) => Buffer.byteLength(line)).every((bytes) => bytes <= 8192)).toBe(true);
    await print(logs, workloadsDir, appId, key, new Uint8Array([0xff, 0xfe, 0x41, 0x0a]));
    expect((await readAll()).at(-1)).toBe('\ufffd\ufffdA');
  });

  it('retains the newest 50 MiB, and frees the disk space of raw output', { timeout: 60_000 }, async () => {
    const line = `${'x'.repeat(1000)}\n`;
    for (let part = 0; part < 12; part += 1) {
      await print(logs, workloadsDir, appId, key, line.repeat(6000));
      await (await logs.collectorOf(appId)).flush();
    }
    await print(logs, workloadsDir, appId, key, 'the end\n');
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
    await expect.poll(async () => (await stat(rawPath())).blocks * 512).toBeLessThan(8 * 1024 * 1024);
    await reopen();
    await appendFile(rawPath(), 'after\n');
    expect((await logs.readLogs(appId, { lines: 2 })).map(({ message }) => message)).toEqual(['the end', 'after']);
  });

  it('gives no line a time before it was written, also where the clock of the file system is behind', async () => {
    const files = await (await logs.collectorOf(appId)).openOutput(key);
    await files.close();
    const writtenAt = new Date();
    await logs.close();
    await appendFile(rawPath(), 'line\n');
    const behind = new Date(writtenAt.getTime() - 50);
    await utimes(rawPath(), behind, behind);
    await reopen();
    expect(await logs.readLogs(appId, { lines: 1, since: writtenAt })).toMatchObject([{ message: 'line' }]);
  });

  it('gives output that was written while no control plane ran the time of that write', async () => {
    await print(logs, workloadsDir, appId, key, '');
    await logs.close();
    await appendFile(rawPath(), 'line\n');
    const anHourAgo = new Date(Date.now() - millisecondsPerHour);
    await utimes(rawPath(), anHourAgo, anHourAgo);
    await reopen();
    const [entry] = await logs.readLogs(appId, { lines: 1 });
    expect(entry?.ts.getTime()).toBeGreaterThanOrEqual(anHourAgo.getTime());
    expect(entry?.ts.getTime()).toBeLessThan(anHourAgo.getTime() + 1000);
  });

  it('never goes back in time, also where raw output is collected late', async () => {
    await print(logs, workloadsDir, appId, key, 'early\n');
    await logs.appendPlatformLog(appId, 'said later');
    await appendFile(rawPath(), 'late\n');
    const entries = await logs.readLogs(appId, { lines: 10 });
    expect(entries.map(({ message }) => message)).toEqual(['early', 'said later', 'late']);
    expect(entries.map(({ ts }) => ts.getTime())).toEqual(entries.map(({ ts }) => ts.getTime()).sort((a, b) => a - b));
  });
});
