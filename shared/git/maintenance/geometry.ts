import type { CataloguedPack } from '#shared/git/packs/catalog/pack-catalog.ts';

/** Each pack has at least so many times the objects of the next smaller one. */
const factor = 2;

/**
 * The packs to join so that the sizes of what is then left make a geometric progression, as `git repack --geometric=2`
 * chooses them: small ones nearly always, large ones the more rarely the larger they are. An object is then copied as
 * often as the logarithm of the repository's size, and no more than that many packs stay.
 *
 * @param mostObjects of the pack they are joined into
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
  // The larger one of the two that are too much alike is joined as well.
  if (split > 0) split++;
  let total = 0;
  for (let at = 0; at < split; at++) total += count(at);
  for (; split > 0 && split < ascending.length && count(split) < factor * total; split++) total += count(split);
  while (split > 0 && total > mostObjects) total -= count(--split);
  return split < 2 ? [] : ascending.slice(0, split);
}
