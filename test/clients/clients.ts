/**
 * `npm run test:clients -- [--refs N] [--git /path/to/git]... [--only name] [--transport ssh|http]`: runs every
 * operation with each git client, over SSH and HTTP, against a whole platform. Clients are downloaded by the package managers that
 * are installed; unavailable ones are listed. Prints a table, and exits with 1 when something failed.
 */
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { GitClient, Skipped } from '#test/clients/client.ts';
import { openDrivenClients } from '#test/clients/driven-clients.ts';
import { openIsomorphicGit } from '#test/clients/isomorphic-git.ts';
import { createFixture, operations } from '#test/clients/operations.ts';
import { openStockGits } from '#test/clients/stock-git.ts';
import { removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser } from '#test/support/platform/user.ts';

const { values } = parseArgs({
  options: {
    refs: { type: 'string', default: '1000' },
    git: { type: 'string', multiple: true, default: [] },
    only: { type: 'string' },
    transport: { type: 'string' },
  },
});
const cache = join(tmpdir(), 'paas-git-clients');
await mkdir(cache, { recursive: true });
const toolbox = { cache, gits: values.git };
const clients: (GitClient | Skipped)[] = [
  ...(await openStockGits(toolbox)),
  openIsomorphicGit(),
  ...(await openDrivenClients(toolbox)),
  { name: 'gitoxide', because: 'no package registry has it as a program, and building it takes a quarter of an hour' },
];
const platform = await startPlatform();
const user = await createUser(platform);
const table: string[][] = [['', ...Object.keys(operations)]];
const failures: string[] = [];
try {
  for (const client of clients) {
    if ('because' in client || (values.only !== undefined && !client.name.includes(values.only))) continue;
    for (const transport of client.transports) {
      if (values.transport !== undefined && values.transport !== transport) continue;
      table.push([`${client.name}, ${transport}`, ...(await runAll(client, transport))]);
      console.log(table.at(-1)?.join(' | '));
    }
  }
} finally {
  await user.remove();
  await removePlatform(platform);
}
console.log();
for (const [index, row] of table.entries()) {
  console.log(`| ${row.join(' | ')} |`);
  if (index === 0) console.log(`|${' --- |'.repeat(row.length)}`);
}
for (const client of clients) if ('because' in client) console.log(`skipped: ${client.name}: ${client.because}`);
process.exitCode = failures.length > 0 ? 1 : 0;

/** The seconds that each operation took, or 'FAILED'. */
async function runAll(client: GitClient, transport: 'ssh' | 'http'): Promise<string[]> {
  const options = { platform, user, client, transport, app: `app-${table.length}`, refs: Number(values.refs) };
  const fixture = await createFixture(options);
  const cells: string[] = [];
  for (const [name, run] of Object.entries(operations)) {
    const started = performance.now();
    try {
      await run(fixture);
      cells.push(`${((performance.now() - started) / 1000).toFixed(1)} s`);
    } catch (error) {
      cells.push('FAILED');
      failures.push(`${client.name}, ${transport}, ${name}: ${String(error).replaceAll(user.token, '***').slice(0, 3000)}`);
      console.log(failures.at(-1));
    }
  }
  return cells;
}
