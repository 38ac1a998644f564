import { type Selectable, sql } from 'kysely';
import type { SshKey, SshKeys } from '#shared/core/accounts/accounts.ts';
import { requireLogin } from '#shared/core/accounts/authorization.ts';
import { readMembership } from '#shared/core/accounts/memberships.ts';
import { parsePublicKey } from '#shared/core/accounts/public-key.ts';
import type { Context } from '#shared/core/context.ts';
import { decodeCursor, toPage } from '#shared/core/page.ts';
import type { Database } from '#shared/database/schema.ts';
import { isUniqueViolation } from '#shared/database/violations.ts';
import { AppError, notFound } from '#shared/errors.ts';
import { isUuid, newUuid, type SshKeyId } from '#shared/ids.ts';
import { sshFingerprint, sshKeyHash } from '#shared/ssh-public-key.ts';

export function createSshKeys({ db, clock }: Context): SshKeys {
  return {
    async addKey(principal, { id = newUuid(), name, publicKey }) {
      requireLogin(principal);
      const before = await db.selectFrom('ssh_keys').selectAll().where('id', '=', id).executeTakeFirst();
      if (before?.user_id === principal.userId) return toSshKey(before);
      const key = parsePublicKey(publicKey);
      const row = {
        id,
        user_id: principal.userId,
        name: name.trim() === '' ? key.comment || key.type : name.trim(),
        public_key: `${key.type} ${key.blob.toBase64()}`,
        fingerprint: await sshFingerprint(key.blob),
        key_hash: await sshKeyHash(key.blob),
        created_at: clock.now(),
        last_used_at: null,
      };
      try {
        await db.insertInto('ssh_keys').values(row).execute();
      } catch (error) {
        if (isUniqueViolation(error)) throw new AppError('conflict', 'This key is already registered.', { cause: error });
        throw error;
      }
      return toSshKey(row);
    },

    async listKeys(principal, { limit, cursor }) {
      let select = db.selectFrom('ssh_keys').selectAll().where('user_id', '=', principal.userId);
      if (cursor !== undefined) {
        const before = decodeCursor(cursor);
        select = select.where(sql<boolean>`(created_at, id) < (${before.createdAt}, ${before.id}::uuid)`);
      }
      const rows = await select
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute();
      return toPage(rows, limit, (row) => ({ createdAt: row.created_at, id: row.id }), toSshKey);
    },

    async deleteKey(principal, key) {
      requireLogin(principal);
      const result = await db
        .deleteFrom('ssh_keys')
        .where('user_id', '=', principal.userId)
        .where(isUuid(key) ? 'id' : 'fingerprint', '=', key as SshKeyId)
        .executeTakeFirst();
      if (result.numDeletedRows === 0n) throw notFound('SSH key');
    },

    async resolveKey(blob) {
      const row = await db
        .updateTable('ssh_keys')
        .set({ last_used_at: clock.now() })
        .where('key_hash', '=', await sshKeyHash(blob))
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) return undefined;
      const principal = await readMembership(db, row.user_id);
      return principal && { ...principal, keyId: row.id, fingerprint: row.fingerprint };
    },
  };
}

function toSshKey(row: Selectable<Database['ssh_keys']>): SshKey {
  return {
    id: row.id,
    name: row.name,
    publicKey: row.public_key,
    fingerprint: row.fingerprint,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
  };
}
