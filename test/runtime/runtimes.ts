/**
 * `npm run test:runtimes`: the same tests of the API, made from the OpenAPI document, in each runtime; a table at the end. Deno and
 * workerd are fetched from the package registry. `-- deno bun` for some.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const all = ['node', 'bun', 'deno', 'workerd'];

interface Results {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  success: boolean;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const asked = process.argv.slice(2);
const unknown = asked.find((name) => !all.includes(name));
if (unknown !== undefined) throw new Error(`${unknown} is not a runtime. There are: ${all.join(', ')}.`);
const directory = await mkdtemp(join(tmpdir(), 'paas-runtimes-'));

function run(args: readonly string[], runtime?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ...(runtime === undefined ? {} : { TEST_API_RUNTIME: runtime }) };
    const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit', env });
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

try {
  const rows: string[] = [];
  if ((await run(['deploy/edge/bundle.ts'])) !== 0) throw new Error('The bundle for workerd could not be made.');
  for (const runtime of asked.length > 0 ? asked : all) {
    const file = join(directory, `${runtime}.json`);
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'vitest.runtimes.config.ts'];
    await run([...vitest, '--reporter', 'dot', '--reporter', 'json', '--outputFile.json', file], runtime);
    const results = await readFile(file, 'utf8').then(
      (text) => JSON.parse(text) as Results,
      () => undefined,
    );
    if (results?.success !== true) process.exitCode = 1;
    const { numPassedTests: passed = 0, numFailedTests: failed = 0, numPendingTests: skipped = 0 } = results ?? {};
    rows.push(
      `${runtime.padEnd(8)} ${results === undefined ? 'did not run' : `${passed} passed, ${failed} failed, ${skipped} skipped`}`,
    );
  }
  console.log(`\n${rows.join('\n')}`);
} finally {
  await rm(directory, { recursive: true, force: true });
}
