import { spawn } from 'node:child_process';

/**
 * Runs a program to its end, off the terminal.
 * @param {string} file
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: Record<string, string | undefined>, onOutput?: (text: string) => void }} [options]
 * @returns {Promise<{ code: number | null, output: string }>} code is null when it could not be started; both streams in `output`
 */
export function run(file, args, { cwd, env = {}, onOutput = () => undefined } = {}) {
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const take = (/** @type {Buffer} */ chunk) => {
      output += chunk.toString();
      onOutput(chunk.toString());
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('error', (error) => resolve({ code: null, output: error.message }));
    child.on('close', (code) => resolve({ code: code ?? 1, output }));
  });
}

/**
 * Says what is done while it is done, and how long it took.
 * @template Result
 * @param {string} what
 * @param {() => Promise<Result>} work
 * @returns {Promise<Result>}
 */
export async function step(what, work) {
  console.log(`-----> ${what}`);
  const began = performance.now();
  const seconds = () => Math.round((performance.now() - began) / 1000);
  const heartbeat = setInterval(() => console.log(`       still at it after ${seconds()} s`), 10_000);
  try {
    const result = await work();
    console.log(`       done in ${seconds()} s`);
    return result;
  } finally {
    clearInterval(heartbeat);
  }
}
