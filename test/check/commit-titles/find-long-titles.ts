import { realpath } from 'node:fs/promises';
import { run } from '#test/support/run-program.ts';

/** Characters. */
export const longestTitle = 72;

/** The rule is younger than this project: titles of commits up to 7a418af may be longer. Seconds since 1970. */
const ruleSince = 1_795_317_626;
const withoutRemote = 20;

/**
 * Complaints about the titles of commits that `origin/main` does not have, or of the last 20 where there is no such branch. Merges
 * are left out: git words them. Empty where there is no git, or where `root` is not the top of a repository.
 */
export async function findLongTitles(root: string): Promise<string[]> {
  const git = async (...args: readonly string[]): Promise<string | undefined> => {
    const result = await run('git', args, { cwd: root }).catch(() => undefined);
    return result?.code === 0 ? result.stdout : undefined;
  };
  const top = await git('rev-parse', '--show-toplevel');
  // A copy of the source without its history may be inside somebody else's repository.
  if (top === undefined || (await realpath(top.replace(/\n$/, ''))) !== (await realpath(root))) return [];

  const format = ['log', '--no-merges', '--format=%h%x09%ct%x09%s'];
  const log =
    (await git(...format, 'origin/main..HEAD', '--')) ?? (await git(...format, `-${withoutRemote}`, 'HEAD', '--')) ?? '';
  return log.split('\n').flatMap((line) => {
    const [id = '', committed = '', ...title] = line.split('\t');
    const length = [...title.join('\t')].length;
    if (length <= longestTitle || Number(committed) <= ruleSince) return [];
    return [`${id} has a title of ${length} characters, ${longestTitle} are allowed: ${title.join('\t')}`];
  });
}
