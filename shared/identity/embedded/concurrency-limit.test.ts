import { describe, expect, it } from 'vitest';
import { createConcurrencyLimit } from '#shared/identity/embedded/concurrency-limit.ts';

describe('concurrency limit', () => {
  const open = () => Promise.withResolvers<void>();

  it('runs as many tasks as allowed and the others in order as each ends', async () => {
    const limit = createConcurrencyLimit(2, 10);
    const gates = [open(), open(), open(), open()];
    const entered: number[] = [];
    const works = gates.map((gate, index) =>
      limit(() => {
        entered.push(index);
        return gate.promise;
      }),
    );
    await Promise.resolve();
    expect(entered).toEqual([0, 1]);
    gates[1]?.resolve();
    await works[1];
    await Promise.resolve();
    expect(entered).toEqual([0, 1, 2]);
    for (const gate of gates) gate.resolve();
    await Promise.all(works);
    expect(entered).toEqual([0, 1, 2, 3]);
  });

  it('refuses a task when too many wait, and accepts tasks again afterwards', async () => {
    const limit = createConcurrencyLimit(1, 1);
    const gate = open();
    const [first, second] = [limit(() => gate.promise), limit(() => gate.promise)];
    await expect(limit(() => gate.promise)).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 1 });
    gate.resolve();
    await Promise.all([first, second]);
    await expect(limit(() => Promise.resolve('in'))).resolves.toBe('in');
  });

  it('passes the slot of a failed task on to the next', async () => {
    const limit = createConcurrencyLimit(1, 5);
    const failed = limit(() => Promise.reject(new Error('broken')));
    const next = limit(() => Promise.resolve('in'));
    await expect(failed).rejects.toThrow('broken');
    await expect(next).resolves.toBe('in');
  });
});
