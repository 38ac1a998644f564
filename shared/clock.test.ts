import { describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '#shared/clock.ts';
import { TestClock } from '#test/support/test-clock.ts';

interface Subject {
  name: string;
  make(): { clock: Clock; pass(milliseconds: number): Promise<void> };
}

const pass = (milliseconds: number): Promise<void> => systemClock.sleep(milliseconds + 5);

const subjects: Subject[] = [
  { name: 'system clock', make: () => ({ clock: systemClock, pass }) },
  { name: 'test clock that runs', make: () => ({ clock: TestClock.running(), pass }) },
  {
    name: 'test clock that stands',
    make: () => {
      const clock = TestClock.standing();
      return {
        clock,
        pass: (milliseconds) => {
          clock.advance(milliseconds);
          return Promise.resolve();
        },
      };
    },
  },
];

describe.each(subjects)('$name', ({ make }) => {
  it('is later after a sleep by at least that long', async () => {
    const { clock, pass } = make();
    const before = clock.now().getTime();
    const sleeping = clock.sleep(20);
    await pass(20);
    await sleeping;
    // A timer may fire a fraction of a millisecond early by the wall clock.
    expect(clock.now().getTime() - before).toBeGreaterThanOrEqual(19);
  });

  it('wakes sleepers in the order of their times', async () => {
    const { clock, pass } = make();
    const woken: string[] = [];
    const sleeping = [clock.sleep(30).then(() => woken.push('late')), clock.sleep(5).then(() => woken.push('early'))];
    await pass(30);
    await Promise.all(sleeping);
    expect(woken).toEqual(['early', 'late']);
  });

  it('ends a sleep with the reason of its signal', async () => {
    const { clock } = make();
    const abort = new AbortController();
    const sleeping = clock.sleep(60_000, abort.signal);
    abort.abort(new Error('enough'));
    await expect(sleeping).rejects.toThrow('enough');
  });

  it('does not fall asleep under a signal that is aborted already', async () => {
    const { clock } = make();
    await expect(clock.sleep(60_000, AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
  });
});

it('wakes those who sleep on a test clock that runs when it is moved past their time', async () => {
  const clock = TestClock.running();
  const sleeping = clock.sleep(60_000);
  clock.advance(60_000);
  await expect(sleeping).resolves.toBeUndefined();
});
