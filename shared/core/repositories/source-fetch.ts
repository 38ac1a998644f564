import type { AppRow } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import { enqueueMaintenance } from '#shared/core/repositories/repository-maintenance.ts';
import { readSourceAccess, rememberHostKey } from '#shared/core/repositories/source-keys.ts';
import { AppError } from '#shared/errors.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';
import { isOwnRepository } from '#shared/sources/git-url.ts';
import type { RemoteTips, SourceAccess } from '#shared/sources/source-hosts.ts';

/** A commit of a repository on another git host. */
export interface RemoteSource {
  url: string;
  /** 'refs/heads/main' */
  ref: string;
  /** Null: the commit that `ref` names when the source is fetched. */
  commit: ObjectId | null;
}

/** Commits offered to the git host as present here, so that it sends only what is new. */
const maxHaves = 256;
const branchPrefix = 'refs/heads/';
/** Attempts to move a ref that others move at the same moment. */
const maxMoves = 5;

/**
 * Fetches the commit into the app's repository, with the checks of a push, and moves the branch there to it: our branch is
 * a copy of theirs. May be called again.
 * @throws AppError `validation_failed` for what the app's owner can fix
 */
export async function fetchSource(
  context: Context,
  repositoryId: RepositoryId,
  source: RemoteSource,
  signal: AbortSignal,
): Promise<{ commit: ObjectId }> {
  const { db, git, sources } = context;
  const known = source.commit === null ? undefined : await git.reader.resolveCommit(repositoryId, source.commit);
  if (known !== undefined) {
    await followBranch(context, repositoryId, source.ref, known);
    return { commit: known };
  }
  const refs = await git.refs.listRefs(repositoryId);
  const fetched = await sources.fetchSource({
    url: source.url,
    ref: source.ref,
    commit: source.commit ?? undefined,
    haves: [...new Set(refs.map(({ oid }) => oid))].slice(0, maxHaves),
    ...(await readSourceAccess(context, repositoryId, source.url)),
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
  if (commit === undefined) throw new AppError('validation_failed', 'The git host did not send the requested commit.');
  await followBranch(context, repositoryId, source.ref, commit);
  return { commit };
}

/**
 * The branches of the repository at `url`, and their newest commits. The app's own repository has no default branch.
 * @param given what to read it with; left out: what the app has
 * @throws AppError `validation_failed` when the git host cannot be asked
 */
export async function readSourceTips(
  context: Context,
  app: Pick<AppRow, 'name' | 'repository_id'>,
  url: string,
  signal: AbortSignal,
  given?: SourceAccess,
): Promise<Pick<RemoteTips, 'branches' | 'defaultBranch'>> {
  const { addresses, git, sources } = context;
  if (isOwnRepository(url, addresses.pushUrl(app.name))) {
    const refs = await git.refs.listRefs(app.repository_id);
    const branches = refs.filter(({ name }) => name.startsWith(branchPrefix));
    return {
      branches: new Map(branches.map(({ name, oid }) => [name.slice(branchPrefix.length), oid])),
      defaultBranch: undefined,
    };
  }
  const access = given ?? (await readSourceAccess(context, app.repository_id, url));
  const { newHostKey, ...tips } = await sources.listTips({ url, ...access, signal });
  if (newHostKey !== undefined) await rememberHostKey(context, app.repository_id, newHostKey);
  return tips;
}

/** Creates or moves our copy of the branch. */
async function followBranch({ db, git }: Context, repositoryId: RepositoryId, ref: string, commit: ObjectId): Promise<void> {
  for (let left = maxMoves; left > 0; left--) {
    const refs = await git.refs.listRefs(repositoryId);
    const current = refs.find(({ name }) => name === ref)?.oid;
    if (current === commit) return;
    const blocking = refs.find(({ name }) => name.startsWith(`${ref}/`) || ref.startsWith(`${name}/`));
    if (blocking !== undefined) {
      const message = `The app's repository has ${blocking.name}, so it cannot have ${ref}. Delete it: git push paas --delete ${blocking.name}`;
      throw new AppError('validation_failed', message);
    }
    if (await git.refs.compareAndSwap(db, repositoryId, [{ name: ref, oldOid: current, newOid: commit }])) return;
  }
  throw new AppError('validation_failed', `${ref} moved too often while it was fetched. Start the build again.`);
}
