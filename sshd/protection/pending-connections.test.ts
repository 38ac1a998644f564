import { beforeEach, expect, test } from 'vitest';
import { limits } from '#shared/limits.ts';
import { WaitingRoom } from './pending-connections.ts';

let now = 0;
let dropped: string[] = [];
const clock = { now: () => new Date(now), sleep: () => Promise.resolve() };
beforeEach(() => {
  now = 1_700_000_000_000;
  dropped = [];
});

const guest = (source: string, name = source, progress: 0 | 1 | 2 = 0) => ({
  source,
  progress: () => progress,
  drop: () => void dropped.push(name),
});
const always = (): number => 0;
const never = (): number => 0.999;

test('below the soft cap nobody is dropped, however long they wait', () => {
  const room = new WaitingRoom(limits.ssh, clock, always);
  for (let i = 0; i < 10; i += 1) room.enter(guest('a'));
  now += 29_000;
  expect(dropped).toEqual([]);
});

test('from the soft cap on whoever lingers may be dropped, who came just now may not', () => {
  const room = new WaitingRoom(limits.ssh, clock, always);
  for (let i = 0; i < 30; i += 1) room.enter(guest('a', `a${i}`));
  expect(dropped).toEqual([]);
  now += 3000;
  room.enter(guest('b'));
  expect(dropped).toEqual(['a0']);
});

test('the probability of a drop starts at the ratio', () => {
  const drops = (random: number): number => {
    dropped = [];
    const room = new WaitingRoom(limits.ssh, clock, () => random);
    for (let i = 0; i < 10; i += 1) room.enter(guest('a'));
    now += 5000;
    room.enter(guest('b'));
    return dropped.length;
  };
  expect(drops(0.29)).toBe(1);
  expect(drops(0.31)).toBe(0);
});

test('at the hard cap the oldest of the source with most guests goes, and the newcomer stays', () => {
  const room = new WaitingRoom(limits.ssh, clock, never);
  room.enter(guest('early bird'));
  for (let i = 0; i < 99; i += 1) room.enter(guest('crowd', `crowd ${i}`));
  room.enter(guest('newcomer'));
  room.enter(guest('newcomer'));
  expect(dropped).toEqual(['crowd 0', 'crowd 1']);
  expect(room.size).toBe(100);
});

test('who has logged in or left makes room', () => {
  const room = new WaitingRoom(limits.ssh, clock, never);
  const guests = Array.from({ length: 100 }, () => guest('a'));
  for (const each of guests) room.enter(each);
  for (const each of guests.slice(50)) room.leave(each);
  for (let i = 0; i < 50; i += 1) room.enter(guest('b'));
  expect(dropped).toEqual([]);
  expect(room.size).toBe(100);
});

test('of one source those who have come least far go first', () => {
  const room = new WaitingRoom(limits.ssh, clock, never);
  room.enter(guest('a', 'exchanged keys', 2));
  room.enter(guest('a', 'said who it is', 1));
  for (let i = 0; i < 98; i += 1) room.enter(guest('a', `silent ${i}`));
  for (let i = 98; i < 196; i += 1) room.enter(guest('a', `silent ${i}`));
  expect(dropped).toEqual(Array.from({ length: 98 }, (_, i) => `silent ${i}`));
});

test.each([
  ['said who they are', 1, 1001],
  ['exchanged keys', 2, 5001],
] as const)('a crowd that has %s and goes no further goes before newcomers of its source do', (_what, progress, milliseconds) => {
  const room = new WaitingRoom(limits.ssh, clock, never);
  for (let i = 0; i < 100; i += 1) room.enter(guest('a', `crowd ${i}`, progress));
  now += milliseconds;
  for (let i = 0; i < 20; i += 1) room.enter(guest('a', `newcomer ${i}`));
  expect(dropped).toEqual(Array.from({ length: 20 }, (_, i) => `crowd ${i}`));
});
