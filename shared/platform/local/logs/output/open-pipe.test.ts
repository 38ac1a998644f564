import { closeSync, fstatSync, readlinkSync, readSync, writeSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createPipeStock } from './open-pipe.ts';

it('pipes of a stock are without names, empty, and each is given out once, also to many at the same time', async () => {
  const stock = createPipeStock();
  const pipes = await Promise.all(Array.from({ length: 20 }, () => stock.take()));
  const names = pipes.map((fd) => readlinkSync(`/proc/self/fd/${fd}`));
  expect(names.every((name) => /^pipe:\[\d+\]$/.test(name))).toBe(true);
  expect(new Set(names).size).toBe(20);
  const buffer = Buffer.alloc(10);
  for (const fd of pipes) {
    expect(fstatSync(fd).isFIFO()).toBe(true);
    expect(() => readSync(fd, buffer)).toThrow('EAGAIN');
    writeSync(fd, 'one');
    expect(buffer.toString('utf8', 0, readSync(fd, buffer))).toBe('one');
    closeSync(fd);
  }
});
