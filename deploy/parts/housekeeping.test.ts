import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type HousekeepingTask, startHousekeeping } from '#deploy/parts/housekeeping.ts';
import { Lifetime } from '#deploy/parts/lifetime.ts';
import { millisecondsPerHour as hour } from '#shared/durations.ts';
import { createLog } from '#shared/log.ts';

const logged: string[] = [];
const log = createLog('debug', (line) => logged.push(line));

function start(tasks: readonly HousekeepingTask[]): Lifetime {
  const lifetime = new Lifetime();
  startHousekeeping(lifetime, tasks, log);
  return lifetime;
}

beforeEach(() => {
  vi.useFakeTimers();
  logged.length = 0;
});
afterEach(() => {
  vi.useRealTimers();
});

it('tasks run at the start and every hour, each after the one before, until the end', async () => {
  const done: string[] = [];
  const tasks = ['one', 'two'].map((name) => ({ name, sweep: async () => done.push(name) }));
  const housekeeping = start(tasks);
  await vi.advanceTimersByTimeAsync(0);
  expect(done).toEqual(['one', 'two']);
  await vi.advanceTimersByTimeAsync(hour);
  expect(done).toEqual(['one', 'two', 'one', 'two']);
  await housekeeping.end('stop');
  await vi.advanceTimersByTimeAsync(2 * hour);
  expect(done).toHaveLength(4);
});

it('a task that fails is logged, keeps no other from running, and runs again', async () => {
  let failures = 0;
  const done: string[] = [];
  const fail = async () => {
    failures += 1;
    throw new Error('the database is away');
  };
  const tasks = [
    { name: 'bad', sweep: fail },
    { name: 'good', sweep: async () => done.push('good') },
  ];
  const housekeeping = start(tasks);
  await vi.advanceTimersByTimeAsync(hour);
  await housekeeping.end('stop');
  expect({ failures, done }).toEqual({ failures: 2, done: ['good', 'good'] });
  expect(logged.filter((line) => line.includes('A housekeeping task failed.') && line.includes('bad'))).toHaveLength(2);
});

it('the end waits for the task that is running, and leaves the others', async () => {
  const gate = Promise.withResolvers<void>();
  const done: string[] = [];
  const first = {
    name: 'first',
    sweep: async () => {
      await gate.promise;
      done.push('first');
    },
  };
  const housekeeping = start([first, { name: 'second', sweep: async () => done.push('second') }]);
  const stopped = housekeeping.end('stop').then(() => done.push('stopped'));
  gate.resolve();
  await stopped;
  expect(done).toEqual(['first', 'stopped']);
});
