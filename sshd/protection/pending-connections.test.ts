import { beforeEach, expect, test } from 'vitest';
import { limits } from '#shared/limits.ts';
import { PendingConnections } from './pending-connections.ts';

let now = 0;
let dropped: string[] = [];
const clock = { now: () => new Date(now), sleep: () => Promise.resolve() };
beforeEach(() => {
  now = 1_700_000_000_000;
  dropped = [];
});

const connection = (source: string, name = source, progress: 0 | 1 | 2 = 0) => ({
  source,
  progress: () => progress,
  drop: () => void dropped.push(name),
});
const always = (): number => 0;
const never = (): number => 0.999;

test('below the soft cap no connection is dropped, however long it takes', () => {
  const pending = new PendingConnections(limits.ssh, clock, always);
  for (let i = 0; i < 10; i += 1) pending.add(connection('a'));
  now += 29_000;
  expect(dropped).toEqual([]);
});

test('from the soft cap on slow connections may be dropped, new ones may not', () => {
  const pending = new PendingConnections(limits.ssh, clock, always);
  for (let i = 0; i < 30; i += 1) pending.add(connection('a', `a${i}`));
  expect(dropped).toEqual([]);
  now += 3000;
  pending.add(connection('b'));
  expect(dropped).toEqual(['a0']);
});

test('the probability of a drop starts at the configured ratio', () => {
  const drops = (random: number): number => {
    dropped = [];
    const pending = new PendingConnections(limits.ssh, clock, () => random);
    for (let i = 0; i < 10; i += 1) pending.add(connection('a'));
    now += 5000;
    pending.add(connection('b'));
    return dropped.length;
  };
  expect(drops(0.29)).toBe(1);
  expect(drops(0.31)).toBe(0);
});

test('at the hard cap the oldest connection of the largest source is dropped, and the newcomer stays', () => {
  const pending = new PendingConnections(limits.ssh, clock, never);
  pending.add(connection('early bird'));
  for (let i = 0; i < 99; i += 1) pending.add(connection('crowd', `crowd ${i}`));
  pending.add(connection('newcomer'));
  pending.add(connection('newcomer'));
  expect(dropped).toEqual(['crowd 0', 'crowd 1']);
  expect(pending.size).toBe(100);
});

test('removed connections make room for others', () => {
  const pending = new PendingConnections(limits.ssh, clock, never);
  const connections = Array.from({ length: 100 }, () => connection('a'));
  for (const each of connections) pending.add(each);
  for (const each of connections.slice(50)) pending.remove(each);
  for (let i = 0; i < 50; i += 1) pending.add(connection('b'));
  expect(dropped).toEqual([]);
  expect(pending.size).toBe(100);
});

test('of one source, connections with the least progress are dropped first', () => {
  const pending = new PendingConnections(limits.ssh, clock, never);
  pending.add(connection('a', 'exchanged keys', 2));
  pending.add(connection('a', 'identified', 1));
  for (let i = 0; i < 98; i += 1) pending.add(connection('a', `silent ${i}`));
  for (let i = 98; i < 196; i += 1) pending.add(connection('a', `silent ${i}`));
  expect(dropped).toEqual(Array.from({ length: 98 }, (_, i) => `silent ${i}`));
});

test.each([
  ['sent its identification string', 1, 1001],
  ['exchanged keys', 2, 5001],
] as const)(
  'a crowd that has %s and stops there is dropped before newcomers of the same source',
  (_what, progress, milliseconds) => {
    const pending = new PendingConnections(limits.ssh, clock, never);
    for (let i = 0; i < 100; i += 1) pending.add(connection('a', `crowd ${i}`, progress));
    now += milliseconds;
    for (let i = 0; i < 20; i += 1) pending.add(connection('a', `newcomer ${i}`));
    expect(dropped).toEqual(Array.from({ length: 20 }, (_, i) => `crowd ${i}`));
  },
);
