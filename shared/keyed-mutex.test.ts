import { expect, it } from 'vitest';
import { createKeyedMutex } from '#shared/keyed-mutex.ts';

it('tasks on one key run one after the other in the order of their calls, also after one that failed', async () => {
  const mutex = createKeyedMutex<string>();
  const events: string[] = [];
  const task = (name: string) => async (): Promise<void> => {
    events.push(`${name} begins`);
    await new Promise((resolve) => setImmediate(resolve));
    events.push(`${name} ends`);
    if (name === 'two') throw new Error('broken');
  };
  await Promise.allSettled(['one', 'two', 'three'].map((name) => mutex.run('key', task(name))));
  expect(events).toEqual(['one begins', 'one ends', 'two begins', 'two ends', 'three begins', 'three ends']);
});

it('a task settles as it does without the mutex', async () => {
  const mutex = createKeyedMutex<string>();
  expect(await mutex.run('key', async () => 'result')).toBe('result');
  await expect(mutex.run('key', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
});

it('a locked key keeps no other key waiting, and is free again after its unlock', async () => {
  const mutex = createKeyedMutex<string>();
  const unlock = await mutex.lock('one');
  let entered = false;
  const second = mutex.run('one', async () => {
    entered = true;
  });
  await mutex.run('other', async () => undefined);
  expect(entered).toBe(false);
  unlock();
  await second;
  expect(entered).toBe(true);
});
