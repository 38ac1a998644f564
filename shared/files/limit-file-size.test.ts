import { mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { limitFileSize } from './limit-file-size.ts';

let directory: string;
let file: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-log-'));
  file = join(directory, 'server.log');
});
afterEach(() => rm(directory, { recursive: true }));

it('a log that is too long starts anew for whoever is writing to it, and its end is kept', async () => {
  const writer = await open(file, 'a');
  await writer.writeFile(`${'a'.repeat(3 * 1024 * 1024)}the end`);
  await limitFileSize(file, 2 * 1024 * 1024);
  await writer.writeFile('the start');
  await writer.close();
  expect(await readFile(file, 'utf8')).toBe('the start');
  const kept = await readFile(`${file}.1`, 'utf8');
  expect(kept).toHaveLength(1024 * 1024);
  expect(kept.endsWith('the end')).toBe(true);
});

it('a log that is not too long stays as it is, and a missing one is none', async () => {
  await limitFileSize(file, 5);
  await writeFile(file, '12345');
  await limitFileSize(file, 5);
  expect((await stat(file)).size).toBe(5);
});
