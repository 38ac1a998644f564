import { expect, it } from 'vitest';
import { omitUndefined } from '#shared/omit-undefined.ts';

it('leaves out what is undefined, and keeps null, false and empty values', () => {
  const name: string | undefined = undefined;
  const fields: { name?: string; branch: string | null; count: number } = omitUndefined({ name, branch: null, count: 0 });
  expect(Object.entries(fields)).toEqual([
    ['branch', null],
    ['count', 0],
  ]);
});
