import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { queryObjects } from 'node:v8';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { millisecondsPerMinute } from '#shared/durations.ts';
import { OpenPack, type PackLocation } from '#shared/git/packs/reading/open-pack.ts';
import { commitFiles, git } from '#shared/git/testing/git-client.ts';
import { withDatabase } from '#shared/git/worker/open-packs.ts';

let directory: string;
let locations: PackLocation[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-open-packs-'));
  await git(directory, 'init', '-q', '.');
  await commitFiles(directory, { a: '1' });
  await git(directory, 'repack', '-adq');
  const packs = join(directory, '.git/objects/pack');
  const name = (await readdir(packs)).find((file) => file.endsWith('.pack'))?.slice(0, -'.pack'.length) ?? '';
  const links = join(directory, 'links');
  await writeFile(links, 'null');
  const location = { pack: join(packs, `${name}.pack`), index: join(packs, `${name}.idx`), links };
  locations = Array.from({ length: 10 }, (_, i) => ({ key: `repository/${i}`, ...location }));
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(directory, { recursive: true });
});

const openPacks = (): number => queryObjects(OpenPack, { format: 'count' });

it('keeps a pack open while it is used now and then, and drops one that was not used for five minutes', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const [used] = locations;
  await withDatabase(locations, async ({ packs }) => expect(packs.every(({ bytes }) => bytes.size > 0)).toBe(true));
  expect(openPacks()).toBe(10);
  for (let minute = 0; minute < 6; minute++) {
    vi.advanceTimersByTime(millisecondsPerMinute);
    await withDatabase(used === undefined ? [] : [used], async () => undefined);
  }
  expect(openPacks()).toBe(1);
});
