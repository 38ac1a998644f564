import type { Kysely } from 'kysely';
import { Migrator } from 'kysely/migration';
import { migrations } from '#shared/database/migrations/migrations.ts';

/**
 * Brings the schema up to date; harmless when it is, and safe when several processes start at once (Kysely takes a
 * lock). Returns the names that ran. Throws what the failing statement threw; that migration is rolled back.
 */
export async function migrate<Schema>(db: Kysely<Schema>): Promise<readonly string[]> {
  const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve(migrations) } });
  const { error, results = [] } = await migrator.migrateToLatest();
  if (error !== undefined) throw error as Error;
  return results.filter((result) => result.status === 'Success').map((result) => result.migrationName);
}
