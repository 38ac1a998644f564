import { type Generated, sql } from 'kysely';
import type { Clock } from '#shared/clock.ts';
import type { Db, UpdatedAt } from '#shared/database/db.ts';
import { abandonedSeconds, type IdempotencyKeys, keptSeconds } from '#shared/idempotency/idempotency.ts';
import type { SecretBox } from '#shared/secret-box.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** The first answer to each POST with an Idempotency-Key. */
    idempotency_keys: {
      subject: string;
      key: string;
      request_hash: string;
      /** Of what the request makes. */
      resource_id: Generated<string>;
      status: number | null;
      response: string | null;
      created_at: UpdatedAt;
    };
  }
}

/** Dependencies of {@link createPostgresIdempotencyKeys}. */
export interface PostgresIdempotencyOptions {
  db: Db;
  /** Encrypts the answers: they may contain secrets of their owner. */
  secrets: SecretBox;
  clock: Clock;
}

/** Idempotency keys shared by all processes that use the database. */
export function createPostgresIdempotencyKeys({ db, secrets, clock }: PostgresIdempotencyOptions): IdempotencyKeys {
  const secondsAgo = (seconds: number): Date => new Date(clock.now().getTime() - seconds * 1000);
  return {
    async claim({ subject, key, requestHash }) {
      const fresh = { request_hash: requestHash, created_at: clock.now() };
      const claimed = await db
        .insertInto('idempotency_keys')
        .values({ subject, key, ...fresh })
        .onConflict((conflict) =>
          conflict
            .columns(['subject', 'key'])
            .doUpdateSet({
              ...fresh,
              resource_id: sql<string>`case when idempotency_keys.request_hash = ${requestHash} and idempotency_keys.status is null
                then idempotency_keys.resource_id else excluded.resource_id end`,
              status: null,
              response: null,
            })
            .where(sql<boolean>`idempotency_keys.created_at <= case when idempotency_keys.status is null
              then ${secondsAgo(abandonedSeconds)}::timestamptz else ${secondsAgo(keptSeconds)}::timestamptz end`),
        )
        .returning('resource_id')
        .executeTakeFirst();
      if (claimed !== undefined) return { state: 'claimed', resourceId: claimed.resource_id };

      const entry = await db
        .selectFrom('idempotency_keys')
        .select(['request_hash', 'status', 'response'])
        .where('subject', '=', subject)
        .where('key', '=', key)
        .executeTakeFirst();
      // Released between the two statements; for this caller another request was still running.
      if (entry === undefined) return { state: 'running' };
      if (entry.request_hash !== requestHash) return { state: 'mismatch' };
      if (entry.status === null || entry.response === null) return { state: 'running' };
      return {
        state: 'answered',
        answer: { status: entry.status, body: await secrets.open(entry.response, purpose(subject, key)) },
      };
    },

    async complete({ subject, key, requestHash }, { status, body }) {
      await db
        .updateTable('idempotency_keys')
        .set({ status, response: await secrets.seal(body, purpose(subject, key)) })
        .where('subject', '=', subject)
        .where('key', '=', key)
        .where('request_hash', '=', requestHash)
        .where('status', 'is', null)
        .execute();
    },

    async release({ subject, key, requestHash }) {
      await db
        .deleteFrom('idempotency_keys')
        .where('subject', '=', subject)
        .where('key', '=', key)
        .where('request_hash', '=', requestHash)
        .where('status', 'is', null)
        .execute();
    },

    async abandon({ subject, key, requestHash }) {
      await db
        .updateTable('idempotency_keys')
        .set({ created_at: secondsAgo(abandonedSeconds) })
        .where('subject', '=', subject)
        .where('key', '=', key)
        .where('request_hash', '=', requestHash)
        .where('status', 'is', null)
        .execute();
    },

    async sweep() {
      const result = await db.deleteFrom('idempotency_keys').where('created_at', '<', secondsAgo(keptSeconds)).executeTakeFirst();
      return Number(result.numDeletedRows);
    },
  };
}

function purpose(subject: string, key: string): string {
  return `idempotency:${JSON.stringify([subject, key])}`;
}
