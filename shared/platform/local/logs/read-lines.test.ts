import { spawn } from 'node:child_process';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { readLines } from './read-lines.ts';

it('every line is read, and the last one without a newline too', async () => {
  const child = spawn('sh', ['-c', "seq 1 100000; printf 'the end'"]);
  let count = 0;
  let last = '';
  await readLines(child.stdout, (text) => {
    count += 1;
    last = text;
  });
  expect(count).toBe(100_001);
  expect(last).toBe('the end');
});

it('a program that prints without end takes a share of this thread only', { timeout: 30_000 }, async () => {
  const child = spawn('yes', ['']);
  try {
    const reading = readLines(child.stdout, () => undefined);
    await delay(3000);
    const before = performance.eventLoopUtilization();
    await delay(2000);
    expect(performance.eventLoopUtilization(before).utilization).toBeLessThan(0.5);
    child.kill();
    await reading;
  } finally {
    child.kill();
  }
});
