import { describe, expect, it } from 'vitest';
import { createTurnstile } from '#shared/identity/embedded/turnstile.ts';

describe('turnstile', () => {
  const open = () => Promise.withResolvers<void>();

  it('lets its width through at once, and the others in order as each leaves', async () => {
    const pass = createTurnstile(2, 10);
    const gates = [open(), open(), open(), open()];
    const entered: number[] = [];
    const works = gates.map((gate, index) =>
      pass(() => {
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

  it('refuses who would have to wait behind too many, and takes people again when it is empty', async () => {
    const pass = createTurnstile(1, 1);
    const gate = open();
    const [first, second] = [pass(() => gate.promise), pass(() => gate.promise)];
    await expect(pass(() => gate.promise)).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 1 });
    gate.resolve();
    await Promise.all([first, second]);
    await expect(pass(() => Promise.resolve('in'))).resolves.toBe('in');
  });

  it('gives the place of a work that failed to the next', async () => {
    const pass = createTurnstile(1, 5);
    const failed = pass(() => Promise.reject(new Error('broken')));
    const next = pass(() => Promise.resolve('in'));
    await expect(failed).rejects.toThrow('broken');
    await expect(next).resolves.toBe('in');
  });
});
