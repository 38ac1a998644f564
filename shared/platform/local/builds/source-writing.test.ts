import { lstat, mkdtemp, readFile, readlink, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SourceEntry } from '#shared/platform/builds.ts';
import { openSourceTree } from './plans/source-tree.ts';
import { type WrittenSource, writeSource } from './source-writing.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'paas-source-'));
});
afterEach(() => rm(root, { recursive: true }));

const entry = (path: string, text: string, kind: SourceEntry['kind'] = 'file'): SourceEntry => ({
  path,
  kind,
  content: new TextEncoder().encode(text),
});

async function write(entries: readonly SourceEntry[], longestBytes = 1000): Promise<WrittenSource> {
  async function* source(): AsyncIterable<SourceEntry> {
    yield* entries;
  }
  return writeSource(`${root}`, source(), { owner: undefined, longestBytes, signal: new AbortController().signal });
}

describe('writing a source to disk', () => {
  it('writes files, executables and symlinks that stay inside', async () => {
    await write([entry('a/b/file', 'text'), entry('a/link', 'b/file', 'symlink'), entry('run', '#!', 'executable')]);
    expect(await readFile(join(root, 'a/link'), 'utf8')).toBe('text');
    expect((await stat(join(root, 'run'))).mode & 0o777).toBe(0o755);
    expect((await stat(join(root, 'a/b/file'))).mode & 0o111).toBe(0);
  });

  it.each(['/etc/passwd', '../outside', 'a/../../outside', ''])('leaves out a symlink to %j and says so', async (target) => {
    const { leftOut } = await write([entry('link', target, 'symlink'), entry('file', '')]);
    expect(leftOut).toEqual(['link']);
    await expect(lstat(join(root, 'link'))).rejects.toThrow('ENOENT');
  });

  it('refuses a symlink whose target is longer than any path, as targets stay in memory until the end', async () => {
    await expect(write([entry('link', 'a/'.repeat(2048), 'symlink')])).rejects.toThrow('further than any path');
    const { leftOut } = await write([entry('link', `${'./'.repeat(2000)}file`, 'symlink'), entry('file', '')]);
    expect(leftOut).toEqual([]);
  });

  it('never writes through a symlink, whichever comes first', async () => {
    const outside = await mkdtemp(join(tmpdir(), 'paas-outside-'));
    try {
      // Two harmless links that together lead out: `up` is the root, `up/..` its parent.
      await expect(write([entry('d/up', '..', 'symlink'), entry('d/up/evil', 'x')])).rejects.toThrow('two entries');
      await expect(write([entry('x', 'y', 'symlink'), entry('x/evil', 'x')])).rejects.toThrow('two entries');
      await expect(lstat(join(root, 'evil'))).rejects.toThrow('ENOENT');
    } finally {
      await rm(outside, { recursive: true });
    }
  });

  it.each(['../x', 'a/../x', '/x', 'a//x', './x', 'x\0y', ''])('refuses the path %j', async (path) => {
    await expect(write([entry(path, '')])).rejects.toThrow('cannot be written');
  });

  it('refuses the same path twice', async () => {
    await expect(write([entry('a', '1'), entry('a', '2')])).rejects.toThrow('two entries');
  });

  it('writes hundreds of files and a streamed one whole, and names the one of them that cannot be', async () => {
    const many = Array.from({ length: 600 }, (_, i) => entry(`many/${i % 7}/${i}`, `${i}`));
    async function* large(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 3; i++) yield Buffer.alloc(1000, `${i}`);
    }
    const streamed: SourceEntry = { path: 'many/7/large', kind: 'executable', content: Object.assign(large(), { size: 3000 }) };
    expect(await write([...many.slice(0, 300), streamed, ...many.slice(300)], 10_000)).toMatchObject({
      files: 601,
      bytes: 4690,
    });
    for (const i of [0, 255, 256, 299, 300, 599]) expect(await readFile(join(root, `many/${i % 7}/${i}`), 'utf8')).toBe(`${i}`);
    expect(await readFile(join(root, 'many/7/large'), 'utf8')).toBe(`${'0'.repeat(1000)}${'1'.repeat(1000)}${'2'.repeat(1000)}`);
    const again = many.map(({ path, ...rest }) => ({ ...rest, path: `again/${path}` }));
    await expect(write([...again, ...again.slice(550, 551)], 10_000)).rejects.toThrow('"again/many/4/550"');
    await expect(write([entry('file', ''), entry('file/below', '')])).rejects.toThrow('two entries');
  });

  it('stops at its limit', async () => {
    await expect(write([entry('a', 'x'.repeat(600)), entry('b', 'x'.repeat(600))])).rejects.toThrow('larger than');
  });
});

describe('looking at a source from outside the sandbox', () => {
  it('does not follow a chain of symlinks that leads out', async () => {
    await write([
      entry('package.json', 'd/up/../../../../../../../etc/hostname', 'symlink'),
      entry('d/up', '..', 'symlink'),
      entry('d/file', ''),
    ]);
    const chain = await write([entry('e/file', ''), entry('e/up', '..', 'symlink'), entry('hosts', 'e/up/../etc', 'symlink')]);
    expect(chain.leftOut).toEqual([]);
    expect(await readlink(join(root, 'hosts'))).toBe('e/up/../etc');
    const source = openSourceTree(root);
    expect(await source.hasFile('hosts')).toBe(false);
    expect(await source.readText('package.json')).toBeUndefined();
    expect(await source.list('hosts')).toEqual([]);
  });

  it('reads files, also through symlinks within', async () => {
    await write([entry('real', 'text'), entry('Procfile', 'real', 'symlink')]);
    const source = openSourceTree(root);
    expect(await source.readText('Procfile')).toBe('text');
    expect(await source.list('')).toEqual(['Procfile', 'real']);
    expect(await source.readText('nowhere')).toBeUndefined();
  });
});
