import { describe, expect, it } from 'vitest';
import { createSecretBox } from '#shared/secret-box.ts';

const key = (): Uint8Array<ArrayBuffer> => crypto.getRandomValues(new Uint8Array(32));

describe('secret box', () => {
  it('opens what it sealed, and seals the same text differently each time', async () => {
    const box = await createSecretBox(key());
    const [one, other] = [await box.seal('grüße', 'p'), await box.seal('grüße', 'p')];
    expect(await box.open(one, 'p')).toBe('grüße');
    expect(one).not.toBe(other);
    expect(one).not.toContain('grüße');
  });

  it.each([
    [
      'for another purpose',
      async () => {
        const box = await createSecretBox(key());
        return box.open(await box.seal('x', 'config:a'), 'config:b');
      },
    ],
    [
      'with another key',
      async () => (await createSecretBox(key())).open(await (await createSecretBox(key())).seal('x', 'p'), 'p'),
    ],
    [
      'after a change',
      async () => {
        const box = await createSecretBox(key());
        const sealed = await box.seal('some text', 'p');
        return box.open(`${sealed.slice(0, -6)}AAAA==`, 'p');
      },
    ],
    ['that was never sealed', async () => (await createSecretBox(key())).open('plain', 'p')],
  ])('does not open a text %s', async (_why, open) => {
    await expect(open()).rejects.toMatchObject({ code: 'internal', message: 'A stored secret could not be read.' });
  });
});
