import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { startHousekeeping } from '#deploy/housekeeping.ts';
import { createLog } from '#shared/log.ts';

const hour = 60 * 60 * 1000;
const logged: string[] = [];
const log = createLog('debug', (line) => logged.push(line));

beforeEach(() => {
  vi.useFakeTimers();
  logged.length = 0;
});
afterEach(() => {
  vi.useRealTimers();
});

it('chores are done at the start and every hour, each after the one before, until the end', async () => {
  const done: string[] = [];
  const chores = ['one', 'two'].map((name) => ({ name, sweep: async () => done.push(name) }));
  const housekeeping = startHousekeeping(chores, log);
  await vi.advanceTimersByTimeAsync(0);
  expect(done).toEqual(['one', 'two']);
  await vi.advanceTimersByTimeAsync(hour);
  expect(done).toEqual(['one', 'two', 'one', 'two']);
  await housekeeping.stop();
  await vi.advanceTimersByTimeAsync(2 * hour);
  expect(done).toHaveLength(4);
});

it('a chore that fails is logged, keeps none from being done, and is tried again', async () => {
  let failures = 0;
  const done: string[] = [];
  const fail = async () => {
    failures += 1;
    throw new Error('the database is away');
  };
  const chores = [
    { name: 'bad', sweep: fail },
    { name: 'good', sweep: async () => done.push('good') },
  ];
  const housekeeping = startHousekeeping(chores, log);
  await vi.advanceTimersByTimeAsync(hour);
  await housekeeping.stop();
  expect({ failures, done }).toEqual({ failures: 2, done: ['good', 'good'] });
  expect(logged.filter((line) => line.includes('A chore failed.') && line.includes('bad'))).toHaveLength(2);
});

it('the end waits for the chore that is being done, and leaves the others', async () => {
  const gate = Promise.withResolvers<void>();
  const done: string[] = [];
  const first = {
    name: 'first',
    sweep: async () => {
      await gate.promise;
      done.push('first');
    },
  };
  const housekeeping = startHousekeeping([first, { name: 'second', sweep: async () => done.push('second') }], log);
  const stopped = housekeeping.stop().then(() => done.push('stopped'));
  gate.resolve();
  await stopped;
  expect(done).toEqual(['first', 'stopped']);
});
