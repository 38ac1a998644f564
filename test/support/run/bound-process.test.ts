import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { isAlive } from '#test/support/database/test-postgres.ts';

/** Starts a shell by `spawnBound`, which starts a program of its own as npx does, and prints the program's pid. */
const source = `
  import { spawnBound } from ${JSON.stringify(new URL('bound-process.ts', import.meta.url).href)};
  const script = 'sleep 1000 & echo $!; ' + process.argv[1];
  spawnBound(['/bin/sh', '-c', script], { cwd: '/', env: process.env }).stdout.pipe(process.stdout);
  setInterval(() => undefined, 1000);`;

async function startParent(then: string): Promise<{ parent: ChildProcess; program: number }> {
  const parent = spawn(process.execPath, ['--no-warnings', '--input-type=module', '-e', source, then], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string];
  return { parent, program: Number(line) };
}

it('a program ends with the process that started it, even one that is killed', async () => {
  const { parent, program } = await startParent('wait');
  expect(isAlive(program)).toBe(true);
  parent.kill('SIGKILL');
  await expect.poll(() => isAlive(program)).toBe(false);
});

it('what a program started ends with it', async () => {
  const { parent, program } = await startParent('exit 0');
  await expect.poll(() => isAlive(program)).toBe(false);
  parent.kill('SIGKILL');
});
