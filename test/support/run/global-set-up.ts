import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { migrate } from '#shared/database/migrate.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import { createClusterTemplate } from '#test/support/database/cluster-template.ts';
import { templateDatabase } from '#test/support/database/test-database.ts';
import { openTestPostgres, removeAbandonedPostgres } from '#test/support/database/test-postgres.ts';
import { listAbandonedDirectories, openTemporaryDirectory } from '#test/support/run/temporary-directory.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Superuser's URL of the server that all test files share. */
    postgresUrl: string;
  }
}

/**
 * Once a run, before any test file: one PostgreSQL server with a migrated template database, the files of an empty server
 * for those that tests start, and what all processes of the run inherit by the environment.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  await removeAbandonedPostgres();
  for (const directory of await listAbandonedDirectories()) {
    await removeAbandonedPostgres(directory);
    await rm(directory, { recursive: true, force: true });
  }
  const temporary = await openTemporaryDirectory();
  if (temporary !== undefined) process.env['TMPDIR'] = temporary.path;
  // Platforms are started by the dozen: what they are made of is compiled once.
  process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('../../../node_modules/.cache/paas-tests', import.meta.url));
  const removeClusterTemplate = await createClusterTemplate();
  const postgres = await openTestPostgres();
  const close = async (): Promise<void> => {
    await postgres.close();
    await removeClusterTemplate();
    await temporary?.remove();
  };
  try {
    await createTemplate(postgres.url);
  } catch (error) {
    await close();
    throw error;
  }
  project.provide('postgresUrl', postgres.url);
  return close;
}

async function createTemplate(serverUrl: string): Promise<void> {
  const fail = (error: Error) => {
    throw error;
  };
  const server = connectPostgres(serverUrl, fail, 1);
  await server.pool.query(`create database ${templateDatabase}`);
  await server.close();
  const url = new URL(serverUrl);
  url.pathname = templateDatabase;
  const template = connectPostgres(url.href, fail, 2);
  try {
    await migrate(template.db);
  } finally {
    await template.close();
  }
}
