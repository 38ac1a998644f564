import { GitFault } from '#shared/git/git-fault.ts';
import { openNativeInflater } from '#shared/git/packs/format/native-inflater.ts';
import { DeltaResolver } from '#shared/git/packs/intake/delta-resolver.ts';
import { appendBase, type PackIndexer } from '#shared/git/packs/intake/pack-indexer.ts';
import { openBytes } from '#shared/git/packs/reading/random-access.ts';

/** Resolves deltas by our own code, within bounded memory, with zlib handles of Node. */
export const nativeIndexer: PackIndexer = {
  openInflater: openNativeInflater,
  async indexDeltas(pack) {
    const { stored } = pack;
    const source = openBytes(pack.packPath);
    const resolver = new DeltaResolver({ ...pack, file: source });
    try {
      if (resolver.unresolved > 0) await resolver.resolveWithin();
      let end = pack.packEnd;
      for (const oid of resolver.unresolved > 0 ? resolver.missingBases() : []) {
        const base = stored.read(oid);
        if (base === undefined) continue;
        if (await resolver.resolveOnto(oid, base.type, () => base.data)) end = appendBase(pack, end, oid, base);
      }
      if (resolver.unresolved > 0) throw new GitFault(`the pack has ${resolver.unresolved} deltas without a base`);
      return end;
    } finally {
      resolver.close();
      source.close();
    }
  },
};
