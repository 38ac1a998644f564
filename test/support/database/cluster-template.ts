import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog } from '#shared/log.ts';
import { startPostgres } from '#shared/platform/local/postgres/postgres-server.ts';
import { runChecked } from '#test/support/run-program.ts';

/** Where the template is; inherited by every process of the run. */
const variable = 'TEST_CLUSTER_TEMPLATE';

/**
 * Creates a database cluster as the platform does, once a run. Its copies save each server of a test the second of CPU time
 * that initdb takes.
 * @returns removes it
 */
export async function createClusterTemplate(): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'paas-cluster-template-'));
  // Run by root, PostgreSQL's own user must get through.
  await chmod(directory, 0o711);
  const log = createLog('warn', (line) => process.stderr.write(`${line}\n`));
  const server = await startPostgres({ directory: join(directory, 'postgres'), settings: { fsync: 'off' }, log });
  await server.stop();
  process.env[variable] = directory;
  return async () => {
    delete process.env[variable];
    await rm(directory, { recursive: true, force: true });
  };
}

/**
 * Puts a new cluster into `directory`, the `postgres` of a data directory, as if a server had been started and stopped there.
 * Outside of a test run there is no template: then the server creates its cluster itself.
 */
export async function copyClusterTemplate(directory: string): Promise<void> {
  const template = process.env[variable];
  if (template === undefined) return;
  await mkdir(directory, { recursive: true });
  const files = ['cluster', 'password'].map((name) => join(template, 'postgres', name));
  // -a: the cluster belongs to PostgreSQL's own user, and PostgreSQL checks it.
  await runChecked('cp', ['-a', ...files, directory]);
}
