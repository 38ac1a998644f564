import type { Selectable } from 'kysely';
import type { CreatedAt, Db, Tables } from '#shared/database/db.ts';
import { type KeysetPage, keysetBefore } from '#shared/database/keyset.ts';
import type { SshKeyId, UserId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    ssh_keys: {
      id: SshKeyId;
      user_id: UserId;
      name: string;
      public_key: string;
      fingerprint: string;
      /** Hex SHA-256 of the raw key blob, unique on the platform. */
      key_hash: string;
      created_at: CreatedAt;
      last_used_at: Date | null;
    };
  }
}

export type SshKeyRow = Selectable<Tables['ssh_keys']>;

/** @throws a unique violation when anybody has registered the key */
export async function insertSshKey(db: Db, row: SshKeyRow): Promise<void> {
  await db.insertInto('ssh_keys').values(row).execute();
}

/** Whether this user has registered the key. */
export async function hasSshKey(db: Db, userId: UserId, keyHash: string): Promise<boolean> {
  const row = await db
    .selectFrom('ssh_keys')
    .select('id')
    .where('key_hash', '=', keyHash)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row !== undefined;
}

/** Takes the key from any other user who has registered it. */
export async function deleteKeyOfOthers(db: Db, keyHash: string, userId: UserId): Promise<void> {
  await db.deleteFrom('ssh_keys').where('key_hash', '=', keyHash).where('user_id', '!=', userId).execute();
}

/** Undefined without such a key. */
export async function readSshKey(db: Db, id: SshKeyId): Promise<SshKeyRow | undefined> {
  return db.selectFrom('ssh_keys').selectAll().where('id', '=', id).executeTakeFirst();
}

/** A user's keys, newest first. */
export async function listSshKeys(db: Db, { userId, before, limit }: KeysetPage & { userId: UserId }): Promise<SshKeyRow[]> {
  return db
    .selectFrom('ssh_keys')
    .selectAll()
    .where('user_id', '=', userId)
    .where(keysetBefore(before))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}

/** False when the user has no such key. */
export async function deleteSshKey(db: Db, userId: UserId, key: { id: SshKeyId } | { fingerprint: string }): Promise<boolean> {
  const owned = db.deleteFrom('ssh_keys').where('user_id', '=', userId);
  const matching = 'id' in key ? owned.where('id', '=', key.id) : owned.where('fingerprint', '=', key.fingerprint);
  return (await matching.executeTakeFirst()).numDeletedRows > 0n;
}

/** All keys of a user. @returns how many */
export async function deleteSshKeysOf(db: Db, userId: UserId): Promise<number> {
  const result = await db.deleteFrom('ssh_keys').where('user_id', '=', userId).executeTakeFirst();
  return Number(result.numDeletedRows);
}

/** Records the use of a key and returns it; undefined when nobody has registered it. */
export async function useSshKey(db: Db, keyHash: string, now: Date): Promise<SshKeyRow | undefined> {
  return db.updateTable('ssh_keys').set({ last_used_at: now }).where('key_hash', '=', keyHash).returningAll().executeTakeFirst();
}
