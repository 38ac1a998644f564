import { readdirSync, readFileSync, write } from 'node:fs';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLog } from '#shared/log.ts';
import { listStream } from './output-segments.ts';
import { createOutputWriter, type OutputWriter } from './output-writer.ts';

const writeBytes = promisify(write);
const log = createLog('silent', () => undefined);
const limits = { segmentBytes: 64 * 1024, retainedBytes: 256 * 1024 };

let directory: string;
let writer: OutputWriter;
let base: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-output-'));
  base = join(directory, 'files/web.o');
  writer = createOutputWriter(directory, log);
});
afterEach(async () => {
  await writer.stop();
  await rm(directory, { recursive: true });
});

async function print(fd: number, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += (await writeBytes(fd, bytes, at)).bytesWritten;
}

async function readOutput(): Promise<string> {
  await writer.sync(join(directory, 'files'));
  return (await Promise.all((await listStream(base)).map(({ path }) => readFile(path, 'utf8')))).join('');
}

/** The processes of this directory. */
function findProcesses(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        // The process sets its title, of which an end may be cut off.
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(`paas-output ${directory}`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

describe('output of programs', () => {
  it('is written to files also after the platform has gone, and by the same process for the next platform', async () => {
    const end = await writer.open(base, limits);
    await print(end.fd, 'one\n');
    await writer.detach();
    await print(end.fd, 'two\n');
    writer = createOutputWriter(directory, log);
    await print(end.fd, 'three\n');
    expect(await readOutput()).toBe('one\ntwo\nthree\n');
    expect(findProcesses()).toHaveLength(1);
    end.close();
  });

  it('never uses more disk space than its limit: the oldest is lost, the newest is there, and nobody waits', async () => {
    const end = await writer.open(base, limits);
    await writer.detach();
    const line = `${'x'.repeat(99)}\n`;
    await print(end.fd, line.repeat(50_000));
    await print(end.fd, 'the end\n');
    writer = createOutputWriter(directory, log);
    expect((await readOutput()).endsWith('xxx\nthe end\n')).toBe(true);
    const segments = await listStream(base);
    const sizes = await Promise.all(segments.map(async ({ path }) => (await stat(path)).size));
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(limits.retainedBytes);
    // The names of the files show what is missing.
    expect(segments.at(-1)!.start + sizes.at(-1)!).toBe(5_000_008);
    end.close();
  });

  it('slows a program down that prints faster than its output is read, and loses nothing', async () => {
    const end = await writer.open(base, limits);
    const printed = print(end.fd, `${'x'.repeat(99)}\n`.repeat(20_000));
    let read = 0;
    while (read < 2_000_000) {
      for (const { path, start } of (await listStream(base)).slice(0, -1)) {
        expect(start).toBe(read);
        read += (await stat(path)).size;
        await rm(path);
      }
      const [newest] = await listStream(base);
      if (newest !== undefined && newest.start + (await stat(newest.path)).size === 2_000_000) break;
    }
    await printed;
    end.close();
  });

  it('is lost, oldest first, when the reader deletes nothing: the program waits a few seconds at most', async () => {
    const end = await writer.open(base, limits);
    await print(end.fd, `${'x'.repeat(99)}\n`.repeat(20_000));
    await expect.poll(async () => (await listStream(base))[0]?.start).toBeGreaterThan(0);
    end.close();
  });

  it('is not lost when the process that writes it is killed: another one takes the pipes over', async () => {
    const end = await writer.open(base, limits);
    await print(end.fd, 'before\n');
    await readOutput();
    const [first = 0] = findProcesses();
    process.kill(first, 'SIGKILL');
    await print(end.fd, 'meanwhile\n');
    await expect.poll(findProcesses).toEqual([expect.not.toSatisfy((pid) => pid === first)]);
    await print(end.fd, 'after\n');
    expect(await readOutput()).toBe('before\nmeanwhile\nafter\n');
    end.close();
  });

  it('goes on in the same files when a program is started again', async () => {
    for (const text of ['first\n', 'second\n']) {
      const end = await writer.open(base, limits);
      await print(end.fd, text);
      end.close();
      await writer.close(base);
    }
    expect(await readOutput()).toBe('first\nsecond\n');
  });

  it('has no process left after a stop', async () => {
    (await writer.open(base, limits)).close();
    await writer.stop();
    await expect.poll(findProcesses).toEqual([]);
  });
});
