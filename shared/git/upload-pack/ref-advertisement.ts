import type { GitRepository, Ref } from '#shared/git/git-storage.ts';
import { pinPacks } from '#shared/git/repository/pinned-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { ObjectId } from '#shared/ids.ts';

/** A ref as clients see it. */
export interface AdvertisedRef extends Ref {
  /** The object that an annotated tag points at, tags of tags peeled; undefined for other refs. */
  peeled: ObjectId | undefined;
}

/** A cache: what a tag object points at never changes. */
const mostCachedTags = 50_000;
const peeledTags = new Map<ObjectId, ObjectId>();

/**
 * The refs of a repository, sorted by name, with what the tags among them peel to.
 *
 * @param prefixes only refs whose names begin with one of these; default: all refs
 */
export async function readPeeledRefs(
  access: RepositoryAccess,
  { repositoryId }: GitRepository,
  prefixes?: readonly string[],
): Promise<AdvertisedRef[]> {
  if (prefixes?.length === 0) return [];
  const refs = await (prefixes === undefined
    ? access.refs.listRefs(repositoryId)
    : access.refs.listRefsBelow(repositoryId, prefixes));
  const unknown = [
    ...new Set(refs.filter(({ name, oid }) => !name.startsWith('refs/heads/') && !peeledTags.has(oid)).map(({ oid }) => oid)),
  ];
  if (unknown.length > 0) {
    using packs = await pinPacks(access, repositoryId);
    const inspections = await packs.run('inspect', { oids: unknown });
    if (peeledTags.size + unknown.length > mostCachedTags) peeledTags.clear();
    unknown.forEach((oid, i) => peeledTags.set(oid, (inspections[i]?.peeled ?? oid) as ObjectId));
  }
  return refs.map((ref) => {
    const peeled = peeledTags.get(ref.oid);
    return { ...ref, peeled: peeled === ref.oid ? undefined : peeled };
  });
}
