import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { StartError } from '#deploy/host/start-error.ts';
import { insertDatabaseOwner, readDatabaseOwner } from '#deploy/parts/database-owner/database-owner-store.ts';
import type { Db } from '#shared/database/db.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import { replaceFile } from '#shared/files/replace-file.ts';

/** Moves with the directory, so that a platform that was moved is still known. */
const idPath = (dataDir: string): string => join(dataDir, 'platform-id');

const readId = async (dataDir: string): Promise<string | undefined> =>
  (await readFile(idPath(dataDir), 'utf8').catch(ifMissing(undefined)))?.trim();

/**
 * Makes the database that of this data directory, if it has none yet. Repositories, images and build caches are in the directory: with
 * another one, the database would name what is not there. Call it with the directory locked.
 * @throws StartError when the database belongs to another data directory
 */
export async function claimDatabase(db: Db, dataDir: string): Promise<void> {
  const known = await readId(dataDir);
  const id = known ?? randomUUID();
  if (known === undefined && (await readDatabaseOwner(db)) === undefined) await replaceFile(idPath(dataDir), `${id}\n`, 0o600);
  await insertDatabaseOwner(db, { id, path: dataDir, host: hostname() });
  await refuseForeignDatabase(db, dataDir);
}

/**
 * Refuses a database that belongs to another data directory.
 * @throws StartError naming that directory, and what to do
 */
export async function refuseForeignDatabase(db: Db, dataDir: string): Promise<void> {
  const owner = await readDatabaseOwner(db);
  if (owner === undefined || owner.id === (await readId(dataDir))) return;
  throw new StartError(
    `PAAS_DATABASE_URL: this database belongs to the data directory ${owner.path} on ${owner.host}, and PAAS_DATA_DIR is ${dataDir}. Set PAAS_DATA_DIR to that directory, or use another database. If that directory is lost and this one replaces it, write ${owner.id} to ${idPath(dataDir)}.`,
  );
}
