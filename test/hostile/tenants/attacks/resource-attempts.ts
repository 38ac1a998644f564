import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Takes memory of one kind in a process of its own; how many MiB it had when it ended. */
async function takeMemory({ kind, mebibytes }: { kind: string; mebibytes: number }): Promise<number> {
  const script = fileURLToPath(new URL('./memory-taker.ts', import.meta.url));
  const child = spawn(process.execPath, [script, kind, String(mebibytes)], { stdio: ['ignore', 'pipe', 'ignore'] });
  let taken = 0;
  for await (const line of createInterface({ input: child.stdout })) taken = Number(line);
  return taken;
}

/** Uses all processors for a while, by more processes than there are. */
async function burnProcessors({ seconds, processes }: { seconds: number; processes: number }): Promise<number> {
  const script = `const end = Date.now() + ${seconds * 1000}; while (Date.now() < end);`;
  const children = Array.from({ length: processes }, () => spawn(process.execPath, ['-e', script], { stdio: 'ignore' }));
  await Promise.all(children.map((child) => new Promise((resolve) => child.on('close', resolve).on('error', resolve))));
  return children.length;
}

export const resourceAttempts = { takeMemory, burnProcessors };
