import type { Context } from '#shared/core/context.ts';
import { addHostKey, insertSourceKey, readSourceKeyRow } from '#shared/core/repositories/source-keys-store.ts';
import { readSourceToken } from '#shared/core/repositories/source-tokens.ts';
import { AppError } from '#shared/errors.ts';
import type { AppId, RepositoryId } from '#shared/ids.ts';
import { parseGitUrl } from '#shared/sources/git-url.ts';
import type { SourceAccess, SourceKey } from '#shared/sources/source-hosts.ts';

/** Bound into the seal: the key of one app does not open as another's. */
const purpose = (appId: AppId): string => `source key of app ${appId}`;

/** The public half of the SSH key with which an app reads its source, created on the first call. */
export async function ensureSourceKey({ db, secrets, sources }: Context, appId: AppId): Promise<string> {
  const existing = await readSourceKeyRow(db, appId);
  if (existing !== undefined) return existing.public_key;
  const { privateKey, publicKey } = await sources.createKey();
  const sealed = await secrets.seal(privateKey, purpose(appId));
  await insertSourceKey(db, { app_id: appId, public_key: publicKey, private_key: sealed });
  // Another call may have been first.
  const stored = await readSourceKeyRow(db, appId);
  if (stored === undefined) throw new AppError('internal', 'The deploy key could not be stored.');
  return stored.public_key;
}

/** The key of the app that owns the repository, which its previews use too; undefined when there is none. */
async function readSourceKey({ db, secrets }: Context, repositoryId: RepositoryId): Promise<SourceKey | undefined> {
  const appId = ownerOf(repositoryId);
  const row = await readSourceKeyRow(db, appId);
  if (row === undefined) return undefined;
  return { privateKey: await secrets.open(row.private_key, purpose(appId)), hostKeys: row.host_keys };
}

/** Trusts the key that a host showed on its first connection; from now on it must show the same. */
export async function rememberHostKey(
  { db }: Context,
  repositoryId: RepositoryId,
  hostKey: { host: string; key: string },
): Promise<void> {
  await addHostKey(db, ownerOf(repositoryId), hostKey);
}

/** What the app that owns the repository has to read its source with: a key for an SSH address, else a token of the host. */
export async function readSourceAccess(context: Context, repositoryId: RepositoryId, url: string): Promise<SourceAccess> {
  if (parseGitUrl(url)?.scheme === 'ssh') return { key: await readSourceKey(context, repositoryId) };
  return { token: await readSourceToken(context, ownerOf(repositoryId), url) };
}

/** A repository has the id of the app that owns it. */
function ownerOf(repositoryId: RepositoryId): AppId {
  return repositoryId as string as AppId;
}
