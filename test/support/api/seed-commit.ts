import { commitOf, PackBuilder, treeEntry } from '#shared/git/testing/pack-builder.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';
import type { TestApi } from '#test/support/api/test-api.ts';

/** A commit with these files, all in the root, as `main` of the app's repository. */
export async function seedCommit(
  { context }: TestApi,
  appId: string,
  files: Readonly<Record<string, string | Buffer>>,
  parent?: ObjectId,
): Promise<ObjectId> {
  const { git, db } = context;
  const repositoryId = appId as RepositoryId;
  const pack = new PackBuilder();
  const names = Object.keys(files).sort();
  const entries = names.map((name) => treeEntry('100644', name, pack.add('blob', files[name] ?? '')));
  const tree = pack.add('tree', Buffer.concat(entries));
  const oid = pack.add('commit', commitOf(tree, ...(parent === undefined ? [] : [`parent ${parent}`]))) as ObjectId;
  const bytes = (async function* () {
    yield pack.build();
  })();
  const staged = await git.stagePack(repositoryId, bytes, new AbortController().signal);
  await staged?.admit(db);
  await staged?.discard();
  const name = 'refs/heads/main';
  await git.refs.compareAndSwap(db, repositoryId, [{ name, oldOid: await git.refs.readRef(repositoryId, name), newOid: oid }]);
  return oid;
}
