import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ifMissing } from '#shared/files/if-missing.ts';
import { replaceFile } from '#shared/files/replace-file.ts';
import { syncDirectory } from '#shared/files/sync-directory.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-files-'));
});
afterEach(() => rm(directory, { recursive: true }));

it('a replaced file has the new content and the mode it was given, and nothing is left beside it', async () => {
  const path = join(directory, 'record');
  await replaceFile(path, 'old', 0o600);
  await replaceFile(path, 'new', 0o600);
  expect(await readFile(path, 'utf8')).toBe('new');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(directory)).toEqual(['record']);
});

it('a replacement that fails leaves what was there, and nothing beside it', async () => {
  const path = join(directory, 'record');
  await mkdir(join(path, 'within'), { recursive: true });
  await expect(replaceFile(path, 'new', 0o600)).rejects.toThrow('EISDIR');
  expect(await readdir(directory)).toEqual(['record']);
  expect(await readdir(path)).toEqual(['within']);
});

it('only what is not there counts as missing', async () => {
  expect(await readFile(join(directory, 'nothing'), 'utf8').catch(ifMissing('none'))).toBe('none');
  await expect(readFile(directory, 'utf8').catch(ifMissing('none'))).rejects.toThrow('EISDIR');
  await expect(syncDirectory(join(directory, 'nothing'))).rejects.toThrow('ENOENT');
});
