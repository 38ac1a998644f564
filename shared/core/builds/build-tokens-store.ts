import type { CreatedAt, Db } from '#shared/database/db.ts';
import type { BuildId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** With which a build's own pipeline asks the control plane. Only the SHA-256 of a token is stored, in hex. */
    build_tokens: {
      token_hash: string;
      build_id: BuildId;
      purpose: BuildTokenPurpose;
      created_at: CreatedAt;
      expires_at: Date;
      used_at: Date | null;
    };
  }
}

/** To get the source, or to report that the build has ended. */
export type BuildTokenPurpose = 'source' | 'callback';

export interface BuildTokenRow {
  token_hash: string;
  build_id: BuildId;
  purpose: BuildTokenPurpose;
}

/** Inserts a token by which a build reaches its source and reports its end. */
export async function insertBuildToken(db: Db, row: BuildTokenRow & { expires_at: Date }): Promise<void> {
  await db
    .insertInto('build_tokens')
    .values({ ...row, used_at: null })
    .execute();
}

/** Uses a token up: true once, for one that has not expired. */
export async function useBuildToken(db: Db, { token_hash, build_id, purpose }: BuildTokenRow, now: Date): Promise<boolean> {
  const result = await db
    .updateTable('build_tokens')
    .set({ used_at: now })
    .where('token_hash', '=', token_hash)
    .where('build_id', '=', build_id)
    .where('purpose', '=', purpose)
    .where('expires_at', '>', now)
    .where('used_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Whether a token is valid, without using it up. */
export async function hasBuildToken(db: Db, { token_hash, build_id, purpose }: BuildTokenRow, now: Date): Promise<boolean> {
  const found = await db
    .selectFrom('build_tokens')
    .select('build_id')
    .where('token_hash', '=', token_hash)
    .where('build_id', '=', build_id)
    .where('purpose', '=', purpose)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return found !== undefined;
}

/** Deletes all tokens of a build. */
export async function deleteBuildTokens(db: Db, buildId: BuildId): Promise<void> {
  await db.deleteFrom('build_tokens').where('build_id', '=', buildId).execute();
}
