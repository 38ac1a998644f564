import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Journal, type JournalEntry, openJournal } from './app-logs-journal.ts';

let directory: string;
let journal: Journal;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-journal-'));
  journal = await openJournal(directory, { segmentBytes: 2 * 1024 * 1024, retainedBytes: 16 * 1024 * 1024 });
});
afterEach(async () => {
  await journal.close();
  await rm(directory, { recursive: true, force: true });
});

const entry = (n: number, length = 100): JournalEntry => ({ t: n, p: 'web.1', s: 'o', v: 1, m: `${n} ${'x'.repeat(length)}` });

describe('a search through a large log', () => {
  it('finds the newest entries in order, over slices and segments, with lines longer than a slice', async () => {
    for (let batch = 0; batch < 40; batch += 1)
      await journal.append(Array.from({ length: 500 }, (_, index) => entry(batch * 500 + index, index === 250 ? 300_000 : 100)));
    const numbers = async (count: number, wanted: (n: number) => boolean): Promise<number[]> =>
      (await journal.readNewest(count, ({ t }) => wanted(t), journal.end())).map(({ t }) => t);
    expect(await numbers(3, () => true)).toEqual([19_997, 19_998, 19_999]);
    const all = await numbers(1_000_000, () => true);
    expect(all.length).toBeGreaterThan(10_000);
    expect(all).toEqual(Array.from({ length: all.length }, (_, index) => 20_000 - all.length + index));
    expect(await numbers(4, (n) => n % 500 === 250)).toEqual([18_250, 18_750, 19_250, 19_750]);
  });

  it('lets other work run after every quarter of a mebibyte', async () => {
    for (let batch = 0; batch < 20; batch += 1)
      await journal.append(Array.from({ length: 1000 }, (_, index) => entry(batch * 1000 + index)));
    let turn = 0;
    let searching = true;
    const countTurns = (): void => {
      turn += 1;
      if (searching) setImmediate(countTurns);
    };
    countTurns();
    const seenInTurn = new Map<number, number>();
    await journal.readNewest(1, () => seenInTurn.set(turn, (seenInTurn.get(turn) ?? 0) + 1) === undefined, journal.end());
    searching = false;
    expect([...seenInTurn.values()].reduce((sum, seen) => sum + seen, 0)).toBe(20_000);
    expect(Math.max(...seenInTurn.values())).toBeLessThan(3000);
  });
});
