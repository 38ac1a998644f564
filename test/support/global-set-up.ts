import type { TestProject } from 'vitest/node';
import { migrate } from '#shared/database/migrate.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import { templateDatabase } from '#test/support/database.ts';
import { openTestPostgres, removeAbandonedPostgres } from '#test/support/postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Superuser's URL of the server that all test files share. */
    postgresUrl: string;
  }
}

/** Once a run, before any test file: one PostgreSQL server with a migrated template database. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  await removeAbandonedPostgres();
  const postgres = await openTestPostgres();
  try {
    await createTemplate(postgres.url);
  } catch (error) {
    await postgres.close();
    throw error;
  }
  project.provide('postgresUrl', postgres.url);
  return () => postgres.close();
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
