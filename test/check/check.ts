/**
 * `npm run check`: checks of the source before any test runs. All parts run, and each one that fails prints its findings.
 * Reads only; `npm run format` fixes the formatting.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

interface Part {
  name: string;
  arguments: readonly string[];
  /** What to type when it fails. */
  remedy?: string;
}

const tsc = 'node_modules/typescript/lib/tsc.js';

const parts: readonly Part[] = [
  { name: 'types', arguments: [tsc, '-p', '.'] },
  // --ignore-pattern: the fixtures break the rules, to prove them.
  { name: 'lint and boundaries', arguments: ['node_modules/oxlint/bin/oxlint', '--ignore-pattern', 'test/fixtures/**'] },
  { name: 'types without Node (api, shared/api-client, shared/core)', arguments: [tsc, '-p', 'tsconfig.edge.json'] },
  { name: 'cycles of imports', arguments: ['test/check/cycles/check-cycles.ts'] },
  { name: 'titles of commits', arguments: ['test/check/commit-titles/check-commit-titles.ts'] },
  { name: 'types of the set-up', arguments: [tsc, '-p', 'deploy/setup'] },
  // Biome's linter runs without rules: it reports suppressions that have no effect.
  {
    name: 'format and suppressions',
    arguments: ['node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings'],
    remedy: 'npm run format',
  },
];

const root = fileURLToPath(new URL('../..', import.meta.url));

function runPart(part: Part): Promise<{ code: number; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...part.arguments], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const take = (chunk: Buffer): void => {
      output += chunk.toString();
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('error', reject);
    child.on('close', (code) => resolve({ code: code ?? 1, output }));
  });
}

/** Takes parts from the list until it is empty. */
async function work(queue: Part[]): Promise<void> {
  for (let part = queue.shift(); part !== undefined; part = queue.shift()) {
    const began = performance.now();
    const { code, output } = await runPart(part);
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    if (code === 0) {
      console.log(`ok    ${part.name} (${seconds} s)`);
    } else {
      console.log(
        `FAILS ${part.name} (${seconds} s)\n${output}${part.remedy === undefined ? '' : `To fix it: ${part.remedy}\n`}`,
      );
      process.exitCode = 1;
    }
  }
}

const queue = [...parts];
await Promise.all([work(queue), work(queue)]);
