import type { GitRepository, Ref } from '#shared/git/git-storage.ts';
import { holdPacks } from '#shared/git/repository/pinned-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { ObjectId } from '#shared/ids.ts';

export interface AdvertisedRef extends Ref {
  /** What an annotated tag points at in the end; undefined for what is no tag. */
  peeled: ObjectId | undefined;
}

/** What a tag object points at never changes, so it is looked up once. */
const rememberedTags = 50_000;
const peeledTags = new Map<ObjectId, ObjectId>();

/**
 * Refs, and what the tags among them peel to.
 *
 * @param prefixes only those whose name begins with one of them; all when not given
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
    using held = await holdPacks(access, repositoryId);
    const inspections = await held.run('inspect', { oids: unknown });
    if (peeledTags.size + unknown.length > rememberedTags) peeledTags.clear();
    unknown.forEach((oid, i) => peeledTags.set(oid, (inspections[i]?.peeled ?? oid) as ObjectId));
  }
  return refs.map((ref) => {
    const peeled = peeledTags.get(ref.oid);
    return { ...ref, peeled: peeled === ref.oid ? undefined : peeled };
  });
}
