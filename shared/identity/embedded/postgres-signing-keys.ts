import type { JWK } from 'jose';
import { sql, type Transaction } from 'kysely';
import type { Database, Db } from '#shared/database/schema.ts';
import type { SigningKeyStore, StoredKey } from '#shared/identity/signing-keys.ts';
import type { SecretBox } from '#shared/secret-box.ts';

/** Private keys are sealed, each for its own id. */
export function createPostgresSigningKeys(db: Db, secrets: SecretBox): SigningKeyStore {
  const toRow = async (key: StoredKey) => ({
    id: key.id,
    public_jwk: JSON.stringify(key.publicJwk),
    private_key: await secrets.seal(key.privateJwk, purpose(key.id)),
    retired_at: null,
  });
  return {
    async list(notRetiredBefore) {
      const rows = await db
        .selectFrom('signing_keys')
        .selectAll()
        .where((row) => row.or([row('retired_at', 'is', null), row('retired_at', '>=', notRetiredBefore)]))
        .orderBy('created_at', 'desc')
        .orderBy('id')
        .execute();
      return Promise.all(
        rows.map(async (row) => ({
          id: row.id,
          publicJwk: row.public_jwk as JWK,
          privateJwk: await secrets.open(row.private_key, purpose(row.id)),
          retiredAt: row.retired_at,
        })),
      );
    },

    addFirst: (key) =>
      oneAtATime(db, async (trx) => {
        const active = await trx.selectFrom('signing_keys').select('id').where('retired_at', 'is', null).executeTakeFirst();
        if (active === undefined)
          await trx
            .insertInto('signing_keys')
            .values(await toRow(key))
            .execute();
      }),

    replace: (key, at) =>
      oneAtATime(db, async (trx) => {
        await trx.updateTable('signing_keys').set({ retired_at: at }).where('retired_at', 'is', null).execute();
        await trx
          .insertInto('signing_keys')
          .values(await toRow(key))
          .execute();
      }),
  };
}

function purpose(id: string): string {
  return `signing-key:${id}`;
}

/** Two processes that start at once must end up with one key. */
function oneAtATime(db: Db, change: (trx: Transaction<Database>) => Promise<void>): Promise<void> {
  return db.transaction().execute(async (trx) => {
    await sql`lock table signing_keys in share row exclusive mode`.execute(trx);
    await change(trx);
  });
}
