import { expect, it } from 'vitest';
import { decodeValue, encodeValue } from './remote-values.ts';

it.each([
  [{ since: new Date(5), lines: 3 }],
  [[undefined, null, true, 1.5, 'text']],
  [new Uint8Array([0, 255])],
  [new Map<string, unknown>([['main', { $date: 1 }]])],
  [{ $bytes: 'not bytes', $signal: true }],
])('carries %j to another process', (value) => {
  expect(decodeValue(encodeValue(value))).toEqual(value);
});

it('puts the signal of the callee where the caller gave one', () => {
  const { signal } = new AbortController();
  expect(decodeValue(encodeValue([new AbortController().signal]), signal)).toEqual([signal]);
});

it('refuses what cannot be sent', () => {
  expect(() => encodeValue([() => 1])).toThrow(TypeError);
});
