import type { Selectable } from 'kysely';
import type { Db, Tables } from '#shared/database/db.ts';
import type { RepositoryId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** Of commits that were built: read from the repository once. */
    commit_titles: {
      repository_id: RepositoryId;
      commit: string;
      /** The first line of the message. */
      title: string;
      /** `Ada <ada@example.com>` */
      author: string;
    };
  }
}

export type CommitTitleRow = Selectable<Tables['commit_titles']>;

/** Does nothing when it is there. */
export async function insertCommitTitle(db: Db, row: CommitTitleRow): Promise<void> {
  await db
    .insertInto('commit_titles')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
