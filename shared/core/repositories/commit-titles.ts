import type { Context } from '#shared/core/context.ts';
import { insertCommitTitle } from '#shared/core/repositories/commit-titles-store.ts';
import { AppError } from '#shared/errors.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

const longestTitle = 200;
const longestAuthor = 300;

/** Remembers the first line and the author of a commit, for lists. A commit that cannot be shown has none. */
export async function rememberCommitTitle(
  { db, git }: Pick<Context, 'db' | 'git'>,
  repositoryId: RepositoryId,
  commit: ObjectId,
): Promise<void> {
  try {
    const { message, author } = await git.browser.readCommit(repositoryId, commit);
    await insertCommitTitle(db, {
      repository_id: repositoryId,
      commit,
      title: shorten(message.trimStart().split('\n', 1)[0] ?? '', longestTitle),
      author: shorten(`${author.name} <${author.email}>`, longestAuthor),
    });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
  }
}

/** One line without control characters, which PostgreSQL and terminals cannot take. */
function shorten(text: string, longest: number): string {
  const line = text.replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, ' ').trim();
  return [...line].slice(0, longest).join('');
}
