import type { SshKey, SshKeys } from '#shared/core/accounts/accounts.ts';
import { requireLogin } from '#shared/core/accounts/authorization.ts';
import { readPrincipal, resolveCaller } from '#shared/core/accounts/callers.ts';
import { checkKeyProof, keyOfAnotherAccount, keyProofText } from '#shared/core/accounts/key-proof.ts';
import { parsePublicKey } from '#shared/core/accounts/public-key.ts';
import {
  deleteKeyOfOthers,
  deleteSshKey,
  hasSshKey,
  insertSshKey,
  listSshKeys,
  readSshKey,
  type SshKeyRow,
  useSshKey,
} from '#shared/core/accounts/ssh-keys-store.ts';
import type { Context } from '#shared/core/context.ts';
import { toKeysetPage, toPage } from '#shared/core/page.ts';
import { isUniqueViolation } from '#shared/database/violations.ts';
import { AppError, notFound } from '#shared/errors.ts';
import { isUuid, newUuid, type SshKeyId } from '#shared/ids.ts';
import { sshFingerprint, sshKeyHash } from '#shared/ssh-public-key.ts';

/** The SSH keys of users, which are looked up by fingerprint at a login. */
export function createSshKeys(context: Context): SshKeys {
  const { db, clock } = context;
  return {
    async addKey(caller, { id = newUuid(), name, publicKey, signature }) {
      const principal = await resolveCaller(context, caller);
      requireLogin(principal);
      const before = await readSshKey(db, id);
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
      const proof = keyProofText(principal.userId, context.settings.baseUrl);
      if (signature !== undefined) await checkKeyProof(key, signature, proof);
      try {
        await db.transaction().execute(async (trx) => {
          if (signature !== undefined) await deleteKeyOfOthers(trx, row.key_hash, principal.userId);
          await insertSshKey(trx, row);
        });
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
        const mine = await hasSshKey(db, principal.userId, row.key_hash);
        throw mine
          ? new AppError('conflict', 'This key is already registered.', { cause: error })
          : keyOfAnotherAccount(proof, error);
      }
      return toSshKey(row);
    },

    async listKeys(caller, page) {
      const { userId } = await resolveCaller(context, caller);
      const rows = await listSshKeys(db, { userId, ...toKeysetPage(page) });
      return toPage(rows, page.limit, toSshKey);
    },

    async deleteKey(caller, key) {
      const principal = await resolveCaller(context, caller);
      requireLogin(principal);
      const deleted = await deleteSshKey(db, principal.userId, isUuid(key) ? { id: key as SshKeyId } : { fingerprint: key });
      if (!deleted) throw notFound('SSH key');
    },

    async resolveKey(blob) {
      const row = await useSshKey(db, await sshKeyHash(blob), clock.now());
      if (row === undefined) return undefined;
      const principal = await readPrincipal(db, row.user_id);
      return principal && { ...principal, keyId: row.id, fingerprint: row.fingerprint };
    },
  };
}

function toSshKey(row: SshKeyRow): SshKey {
  return {
    id: row.id,
    name: row.name,
    publicKey: row.public_key,
    fingerprint: row.fingerprint,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
  };
}
