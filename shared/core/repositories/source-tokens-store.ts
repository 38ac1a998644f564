import type { Selectable } from 'kysely';
import type { Db, Tables } from '#shared/database/db.ts';
import type { AppId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** The token with which an app reads its source, and reports to the git host. */
    source_tokens: {
      app_id: AppId;
      /** The only one it is sent to: `https://git.example.com`. */
      origin: string;
      user_name: string;
      /** Sealed. */
      token: string;
    };
  }
}

export type SourceTokenRow = Selectable<Tables['source_tokens']>;

/** The sealed token. Undefined for an app without one. */
export async function readSourceTokenRow(db: Db, appId: AppId): Promise<SourceTokenRow | undefined> {
  return db.selectFrom('source_tokens').selectAll().where('app_id', '=', appId).executeTakeFirst();
}

/** Replaces the one that the app has. */
export async function writeSourceToken(db: Db, row: SourceTokenRow): Promise<void> {
  const { app_id: _, ...changes } = row;
  await db
    .insertInto('source_tokens')
    .values(row)
    .onConflict((conflict) => conflict.column('app_id').doUpdateSet(changes))
    .execute();
}

/** Deletes the token of an app, if there is one. */
export async function deleteSourceToken(db: Db, appId: AppId): Promise<void> {
  await db.deleteFrom('source_tokens').where('app_id', '=', appId).execute();
}
