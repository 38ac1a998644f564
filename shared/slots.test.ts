import { describe, expect, it } from 'vitest';
import { createSlots } from '#shared/slots.ts';

const never = new AbortController().signal;

describe('slots', () => {
  it('lets no more works run at once than there are slots, and the others in the order in which they came', async () => {
    const slots = createSlots(2);
    const releases = [await slots.take(never), await slots.take(never)];
    const entered: number[] = [];
    const waiting = [3, 4].map(async (number) => {
      const release = await slots.take(never);
      entered.push(number);
      return release;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(entered).toEqual([]);
    releases[0]?.();
    (await waiting[0])?.();
    await waiting[1];
    expect(entered).toEqual([3, 4]);
  });

  it('gives no slot to a work that left the queue, and the next one is served', async () => {
    const slots = createSlots(1);
    const release = await slots.take(never);
    const leaving = new AbortController();
    const gone = slots.take(leaving.signal);
    const next = slots.take(never);
    leaving.abort(new Error('not any more'));
    await expect(gone).rejects.toThrow('not any more');
    release();
    (await next)();
    // The slot is free again: it was given to nobody else.
    await expect(slots.take(never)).resolves.toBeTypeOf('function');
  });

  it('gives a slot that was handed over once, also when the signal aborts right after', async () => {
    const slots = createSlots(1);
    const release = await slots.take(never);
    const late = new AbortController();
    const taken = slots.take(late.signal);
    release();
    late.abort(new Error('too late'));
    (await taken)();
    await expect(slots.take(never)).resolves.toBeTypeOf('function');
  });
});
