import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const source = `
  import { onStopSignal } from ${JSON.stringify(fileURLToPath(new URL('./stop-signals.ts', import.meta.url)))};
  onStopSignal(
    (signal) => {
      console.log('stop', signal);
      setTimeout(() => console.log('later'), 1100);
    },
    (signal) => {
      console.log('insist', signal);
      process.exit(130);
    },
  );
  setInterval(() => undefined, 1000);
  console.log('ready');`;

function start(): { child: ChildProcess; nextLine: () => Promise<string | undefined> } {
  const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, nextLine: async () => (await lines.next()).value };
}

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s, and the copy of it that npm sends, are one request to stop',
  async (signal) => {
    const { child, nextLine } = start();
    expect(await nextLine()).toBe('ready');
    child.kill(signal);
    child.kill(signal);
    expect(await nextLine()).toBe(`stop ${signal}`);
    expect(await nextLine()).toBe('later');
    child.kill('SIGKILL');
    await once(child, 'close');
  },
);

test('asking again later insists', async () => {
  const { child, nextLine } = start();
  expect(await nextLine()).toBe('ready');
  child.kill('SIGINT');
  expect(await nextLine()).toBe('stop SIGINT');
  expect(await nextLine()).toBe('later');
  const ended = once(child, 'close');
  child.kill('SIGINT');
  expect(await nextLine()).toBe('insist SIGINT');
  expect(await ended).toEqual([130, null]);
});
