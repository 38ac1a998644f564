import type { JWK } from 'jose';
import { type JSONColumnType, sql, type Transaction } from 'kysely';
import type { CreatedAt, Db, Tables } from '#shared/database/db.ts';
import type { SigningKeyStore, StoredKey } from '#shared/identity/signing-keys.ts';
import type { SecretBox } from '#shared/secret-box.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** `private_key` is sealed. Retired keys verify until `retired_at` + the longest token life. */
    signing_keys: {
      id: string;
      public_jwk: JSONColumnType<Record<string, unknown>>;
      private_key: string;
      created_at: CreatedAt;
      signs_from: Date;
      retired_at: Date | null;
    };
  }
}

/** Signing keys in PostgreSQL. Private keys are encrypted, each bound to its own id. */
export function createPostgresSigningKeys(db: Db, secrets: SecretBox): SigningKeyStore {
  const toRow = async (key: StoredKey) => ({
    id: key.id,
    public_jwk: JSON.stringify(key.publicJwk),
    private_key: await secrets.seal(key.privateJwk, purpose(key.id)),
    signs_from: key.signsFrom,
    retired_at: null,
  });
  return {
    async list(notRetiredBefore) {
      const rows = await db
        .selectFrom('signing_keys')
        .selectAll()
        .where((row) => row.or([row('retired_at', 'is', null), row('retired_at', '>=', notRetiredBefore)]))
        .orderBy('signs_from', 'desc')
        .orderBy('id')
        .execute();
      return Promise.all(
        rows.map(async (row) => ({
          id: row.id,
          publicJwk: row.public_jwk as JWK,
          privateJwk: await secrets.open(row.private_key, purpose(row.id)),
          signsFrom: row.signs_from,
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

    addSuccessor: (key, agedFrom) =>
      oneAtATime(db, async (trx) => {
        const young = await trx
          .selectFrom('signing_keys')
          .select('id')
          .where('retired_at', 'is', null)
          .where('signs_from', '>', agedFrom)
          .executeTakeFirst();
        if (young !== undefined) return false;
        await trx.updateTable('signing_keys').set({ retired_at: key.signsFrom }).where('retired_at', 'is', null).execute();
        await trx
          .insertInto('signing_keys')
          .values(await toRow(key))
          .execute();
        return true;
      }),

    async deleteRetired(before) {
      const result = await db.deleteFrom('signing_keys').where('retired_at', '<', before).executeTakeFirst();
      return Number(result.numDeletedRows);
    },
  };
}

function purpose(id: string): string {
  return `signing-key:${id}`;
}

/** Two processes that start or rotate keys at the same time must end up with one new key. */
function oneAtATime<Result>(db: Db, change: (trx: Transaction<Tables>) => Promise<Result>): Promise<Result> {
  return db.transaction().execute(async (trx) => {
    await sql`lock table signing_keys in share row exclusive mode`.execute(trx);
    return change(trx);
  });
}
