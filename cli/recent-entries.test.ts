import { expect, it } from 'vitest';
import { type LogEntry, RecentEntries } from '#cli/recent-entries.ts';

function entry(ms: number, message: string, process = 'web.1'): LogEntry {
  return { ts: new Date(ms).toISOString(), process, stream: 'stdout', release_version: 1, message };
}

/** Shows what each connection sends, which is all of the log from the time asked on. */
function show(connections: readonly (readonly LogEntry[])[]): string[] {
  const recent = new RecentEntries();
  return connections.flatMap((log) => {
    const since = recent.resumeFrom() ?? '';
    return log.flatMap((one) => (one.ts >= since && recent.isNew(one) ? [one.message] : []));
  });
}

it('shows an entry that an earlier connection showed no second time', () => {
  const [one, two, three] = [entry(10_000, 'one'), entry(10_001, 'two'), entry(10_002, 'three')];
  expect(
    show([
      [one, two],
      [one, two, three],
      [one, two, three],
    ]),
  ).toEqual(['one', 'two', 'three']);
});

it('shows as many equal entries as there are', () => {
  const same = entry(10_000, 'same');
  expect(
    show([
      [same, same],
      [same, same, same],
    ]),
  ).toEqual(['same', 'same', 'same']);
});

it('shows an entry of another process that comes late, with a time before the last one seen', () => {
  const [first, seen, late] = [entry(10_000, 'first'), entry(10_500, 'seen'), entry(10_400, 'late', 'web.2')];
  expect(
    show([
      [first, seen],
      [first, late, seen],
    ]),
  ).toEqual(['first', 'seen', 'late']);
});

it('does not dig up what is older than the first entry shown', () => {
  const [old, first, next] = [entry(9_000, 'old'), entry(10_000, 'first'), entry(10_001, 'next')];
  expect(show([[first], [old, first, next]])).toEqual(['first', 'next']);
});

it('asks for the last five seconds again, not for all since the start', () => {
  const recent = new RecentEntries();
  expect(recent.resumeFrom()).toBeUndefined();
  recent.isNew(entry(10_000, 'first'));
  recent.isNew(entry(60_000, 'last'));
  expect(recent.resumeFrom()).toBe(new Date(55_000).toISOString());
});
