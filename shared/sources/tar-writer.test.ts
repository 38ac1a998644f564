import { execFile } from 'node:child_process';
import { lstat, mkdtemp, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SourceEntry } from '#shared/platform/builds.ts';
import { readTar } from '#shared/sources/tar-reader.ts';
import { writeTar } from '#shared/sources/tar-writer.ts';

const run = promisify(execFile);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

async function* treeOf(...entries: readonly SourceEntry[]): AsyncGenerator<SourceEntry> {
  yield* entries;
}

function streamOf(size: number, ...chunks: readonly Uint8Array[]): Exclude<SourceEntry['content'], Uint8Array> {
  const stream = (async function* () {
    yield* chunks;
  })();
  return Object.assign(stream, { size });
}

const writeWhole = async (...entries: readonly SourceEntry[]): Promise<Buffer> =>
  Buffer.concat(await Array.fromAsync(writeTar(treeOf(...entries))));

const long = `${'deep/'.repeat(60)}file`;
const entries: readonly SourceEntry[] = [
  { path: 'Procfile', kind: 'file', content: bytes('web: ./run\n') },
  { path: 'bin/run', kind: 'executable', content: bytes('#!/bin/sh\n') },
  { path: 'empty', kind: 'file', content: bytes('') },
  { path: 'large', kind: 'file', content: streamOf(1500, bytes('a'.repeat(1000)), bytes('b'.repeat(500))) },
  { path: 'link', kind: 'symlink', content: bytes('bin/run') },
  { path: 'far', kind: 'symlink', content: bytes(long) },
  { path: long, kind: 'file', content: bytes('deep') },
  { path: 'grüße/日本.txt', kind: 'file', content: bytes('hello') },
];

describe('a tree written as a tar', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'paas-tar-'));
    await writeFile(join(directory, 'source.tar'), await writeWhole(...entries));
    await run('tar', ['-xf', 'source.tar'], { cwd: directory });
  });
  afterAll(() => rm(directory, { recursive: true }));

  it('is what the program tar unpacks, with modes, symlinks, long names and names in any language', async () => {
    const read = (path: string): Promise<string> => readFile(join(directory, path), 'utf8');
    const mode = async (path: string): Promise<number> => (await stat(join(directory, path))).mode & 0o777;
    expect(await read('Procfile')).toBe('web: ./run\n');
    expect([await mode('Procfile'), await mode('bin/run')]).toEqual([0o644, 0o755]);
    expect((await lstat(join(directory, 'empty'))).size).toBe(0);
    expect(await read('large')).toBe('a'.repeat(1000) + 'b'.repeat(500));
    expect(await readlink(join(directory, 'link'))).toBe('bin/run');
    expect(await readlink(join(directory, 'far'))).toBe(long);
    expect(await read(long)).toBe('deep');
    expect(await read('grüße/日本.txt')).toBe('hello');
  });

  it('is what readTar reads', async () => {
    const tar = readTar(treeAsStream(await readFile(join(directory, 'source.tar'))), { bytes: 1e6, entries: 100 });
    const found: string[] = [];
    for await (const { path, kind, size, target } of tar) found.push(`${kind} ${path} ${size} ${target}`);
    expect(found).toContain(`symlink far 0 ${long}`);
    expect(found).toContain('executable bin/run 10 ');
    expect(found).toHaveLength(entries.length);
  });

  it('is the same for the same tree', async () => {
    const [first, second] = [entries[0] as SourceEntry, entries[1] as SourceEntry];
    expect(await writeWhole(first, second)).toEqual(await writeWhole(first, second));
  });

  it('fails when a stream is longer or shorter than it says', async () => {
    await expect(writeWhole({ path: 'a', kind: 'file', content: streamOf(5, bytes('abc')) })).rejects.toThrow(
      '3 bytes and not 5',
    );
    await expect(writeWhole({ path: 'a', kind: 'file', content: streamOf(1, bytes('abc')) })).rejects.toThrow(
      '3 bytes and not 1',
    );
  });
});

async function* treeAsStream(whole: Uint8Array): AsyncGenerator<Uint8Array> {
  yield whole;
}
