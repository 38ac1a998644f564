import { beforeEach, expect, test } from 'vitest';
import { millisecondsPerHour, millisecondsPerMinute } from '#shared/durations.ts';
import { limits } from '#shared/limits.ts';
import { Penalties } from './penalties.ts';

let now = 0;
const clock = { now: () => new Date(now), sleep: () => Promise.resolve() };
beforeEach(() => {
  now = 1_700_000_000_000;
});

test('one failed login has no effect; repeated ones first delay the answer, then refuse connections', () => {
  const penalties = new Penalties(limits.ssh, clock);
  penalties.add('a', 'login-failed');
  expect(penalties.delayMilliseconds('a')).toBe(0);
  for (let i = 0; i < 5; i += 1) penalties.add('a', 'login-failed');
  expect(penalties.delayMilliseconds('a')).toBe(1500);
  expect(penalties.refusedForSeconds('a')).toBe(0);
  for (let i = 0; i < 7; i += 1) penalties.add('a', 'login-failed');
  expect(penalties.delayMilliseconds('a')).toBe(3000);
  expect(penalties.refusedForSeconds('a')).toBe(5);
});

test('another source is not affected', () => {
  const penalties = new Penalties(limits.ssh, clock);
  for (let i = 0; i < 50; i += 1) penalties.add('a', 'broke-protocol');
  expect(penalties.refusedForSeconds('b')).toBe(0);
  expect(penalties.delayMilliseconds('b')).toBe(0);
});

test('points expire, and never add up to more than nine minutes of refusal', () => {
  const penalties = new Penalties(limits.ssh, clock);
  for (let i = 0; i < 1000; i += 1) penalties.add('a', 'broke-protocol');
  expect(penalties.refusedForSeconds('a')).toBe(540);
  now += 541_000;
  expect(penalties.refusedForSeconds('a')).toBe(0);
  now += millisecondsPerMinute;
  expect(penalties.delayMilliseconds('a')).toBe(0);
});

test('an attack from many sources uses limited memory, and the latest sources are remembered', () => {
  const penalties = new Penalties(limits.ssh, clock);
  for (let i = 0; i < 100_000; i += 1) penalties.add(`source ${i % 50_000}`, 'broke-protocol');
  for (let i = 0; i < 6; i += 1) penalties.add('last', 'broke-protocol');
  expect(penalties.size).toBeLessThanOrEqual(10_000);
  expect(penalties.refusedForSeconds('last')).toBeGreaterThan(0);
});

test('a source from which somebody logged in within the last hour is delayed, but not refused', () => {
  const penalties = new Penalties(limits.ssh, clock);
  penalties.loggedIn('office');
  for (let i = 0; i < 600; i += 1) penalties.add('office', 'login-failed');
  expect(penalties.refusedForSeconds('office')).toBe(0);
  expect(penalties.delayMilliseconds('office')).toBe(3000);
  now += millisecondsPerHour;
  for (let i = 0; i < 600; i += 1) penalties.add('office', 'login-failed');
  expect(penalties.refusedForSeconds('office')).toBe(540);
});
