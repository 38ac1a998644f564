import { expect, it } from 'vitest';
import { closest, editDistance } from '#cli/command-line/closest.ts';

it.each([
  ['kitten', 'sitting', 3],
  ['lgos', 'logs', 1],
  ['', 'abc', 3],
  ['same', 'same', 0],
  ['ca', 'abc', 3],
])('%s and %s are %i edits apart', (from, to, distance) => {
  expect(editDistance(from, to)).toBe(distance);
});

it('suggests the most similar candidate', () => {
  expect(closest('confg:set', ['config', 'config:get', 'config:set'])).toBe('config:set');
});

it('suggests nothing for a word that is similar to none', () => {
  expect(closest('xylophone', ['ps', 'logs', 'open'])).toBeUndefined();
});
