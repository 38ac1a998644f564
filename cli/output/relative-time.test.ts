import { expect, it } from 'vitest';
import { relativeTime } from '#cli/output/relative-time.ts';

it.each([
  ['2026-03-01T12:00:00Z', 'just now'],
  ['2026-03-01T11:59:01Z', '59 s ago'],
  ['2026-03-01T11:01:00Z', '59 min ago'],
  ['2026-02-28T13:00:00Z', '23 h ago'],
  ['2026-01-30T12:00:00Z', '30 d ago'],
  ['2026-03-31T12:00:00Z', 'in 30 d'],
])('%s is shown as %s', (time, words) => {
  expect(relativeTime(time, new Date('2026-03-01T12:00:00Z'))).toBe(words);
});
