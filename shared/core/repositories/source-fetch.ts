import type { Context } from '#shared/core/context.ts';
import { enqueueMaintenance } from '#shared/core/repositories/repository-maintenance.ts';
import { readSourceKey, rememberHostKey } from '#shared/core/repositories/source-keys.ts';
import type { GitSource } from '#shared/database/schema.ts';
import { AppError } from '#shared/errors.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';
import { parseGitUrl } from '#shared/sources/git-url.ts';

const mostHaves = 256;
/** A ref that others move at the same moment is tried again this often. */
const moves = 5;

/**
 * Brings the commit into the app's repository, through the same checks as a push, and lets the branch follow: ours is a
 * copy of theirs. Harmless again. @throws AppError validation_failed for what the app's owner can mend
 */
export async function fetchSource(
  context: Context,
  repositoryId: RepositoryId,
  source: GitSource,
  signal: AbortSignal,
): Promise<{ commit: ObjectId }> {
  const { db, git, sources } = context;
  const known = source.commit === null ? undefined : await git.reader.resolveCommit(repositoryId, source.commit);
  if (known !== undefined) {
    await followBranch(context, repositoryId, source.ref, known);
    return { commit: known };
  }
  const refs = await git.refs.listRefs(repositoryId);
  const isSsh = parseGitUrl(source.url)?.scheme === 'ssh';
  const fetched = await sources.fetchSource({
    url: source.url,
    ref: source.ref,
    commit: source.commit ?? undefined,
    haves: [...new Set(refs.map(({ oid }) => oid))].slice(0, mostHaves),
    key: isSsh ? await readSourceKey(context, repositoryId) : undefined,
    signal,
  });
  const pack = await git.stagePack(repositoryId, fetched.pack, signal);
  try {
    await pack?.admit(db);
  } finally {
    await pack?.discard();
  }
  await enqueueMaintenance(context, db, repositoryId);
  if (fetched.newHostKey !== undefined) await rememberHostKey(context, repositoryId, fetched.newHostKey);
  const commit = await git.reader.resolveCommit(repositoryId, fetched.commit);
  if (commit === undefined) throw new AppError('validation_failed', 'The git host did not send the commit that was asked for.');
  await followBranch(context, repositoryId, source.ref, commit);
  return { commit };
}

async function followBranch({ db, git }: Context, repositoryId: RepositoryId, ref: string, commit: ObjectId): Promise<void> {
  for (let left = moves; left > 0; left--) {
    const refs = await git.refs.listRefs(repositoryId);
    const current = refs.find(({ name }) => name === ref)?.oid;
    if (current === commit) return;
    const inTheWay = refs.find(({ name }) => name.startsWith(`${ref}/`) || ref.startsWith(`${name}/`));
    if (inTheWay !== undefined) {
      const message = `The app's repository here has ${inTheWay.name}, so ${ref} cannot be. Delete it: git push paas --delete ${inTheWay.name}`;
      throw new AppError('validation_failed', message);
    }
    if (await git.refs.compareAndSwap(db, repositoryId, [{ name: ref, oldOid: current, newOid: commit }])) return;
  }
  throw new AppError('validation_failed', `${ref} moved too often while it was fetched. Build again.`);
}
