import type { CataloguedPack } from '#shared/git/packs/catalog/pack-catalog.ts';

/** Each pack has at least this many times the objects of the next smaller one. */
const factor = 2;

/**
 * Chooses packs to join, so that the sizes of the remaining packs are a geometric progression, like `git repack --geometric=2`.
 * Small packs are joined nearly always, and large ones the more rarely the larger they are. Both the number of packs and how often
 * an object is copied grow with the logarithm of the repository's size.
 *
 * @param mostObjects that the joined pack may have
 * @returns none, or at least two
 */
export function choosePacksToJoin<Pack extends Pick<CataloguedPack, 'objectCount'>>(
  packs: readonly Pack[],
  mostObjects: number,
): Pack[] {
  const ascending = packs.toSorted((a, b) => a.objectCount - b.objectCount);
  const count = (at: number): number => ascending[at]?.objectCount ?? 0;
  let split = ascending.length - 1;
  while (split > 0 && count(split) >= factor * count(split - 1)) split--;
  // The larger of the two packs that are too similar is joined as well.
  if (split > 0) split++;
  let total = 0;
  for (let at = 0; at < split; at++) total += count(at);
  for (; split > 0 && split < ascending.length && count(split) < factor * total; split++) total += count(split);
  while (split > 0 && total > mostObjects) total -= count(--split);
  return split < 2 ? [] : ascending.slice(0, split);
}
