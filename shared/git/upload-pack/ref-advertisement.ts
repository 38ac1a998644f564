import { holdPacks } from '#shared/git/held-packs.ts';
import type { GitRepository, Ref } from '#shared/git/repository.ts';
import type { RepositoryAccess } from '#shared/git/repository-access.ts';
import type { ObjectId } from '#shared/ids.ts';

export interface AdvertisedRef extends Ref {
  /** What an annotated tag points at in the end; undefined for what is no tag. */
  peeled: ObjectId | undefined;
}

/** What a tag object points at never changes, so it is looked up once. */
const rememberedTags = 50_000;
const peeledTags = new Map<ObjectId, ObjectId>();

/** All refs, and what the tags among them peel to. */
export async function readPeeledRefs(access: RepositoryAccess, { repositoryId }: GitRepository): Promise<AdvertisedRef[]> {
  const refs = await access.refs.listRefs(repositoryId);
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
