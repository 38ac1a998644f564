import { OidTable } from '#shared/git/objects/oid-table.ts';
import type { OpenPack } from '#shared/git/packs/reading/open-pack.ts';

/** Where an object is stored. */
export interface EntryLocation {
  pack: OpenPack;
  offset: number;
}

/** With no more packs than this, they are searched one after the other. */
const fewPacks = 4;
const smallPackObjects = 5000;

/**
 * Finds objects in many packs. A repository has a few large packs and a small one for every recent push. The small ones are
 * merged into one table, so that two thousand of them take no longer than one.
 */
export class PackLookup {
  readonly #large: OpenPack[];
  readonly #small: OpenPack[];
  #table: { oids: OidTable; packs: Uint32Array; offsets: Float64Array } | undefined;

  /** @param packs oldest first: of two copies of an object the one in the older pack is found */
  constructor(packs: readonly OpenPack[]) {
    const merge = packs.length > fewPacks;
    this.#large = packs.filter(({ index }) => !merge || index.objectCount > smallPackObjects);
    this.#small = packs.filter(({ index }) => merge && index.objectCount <= smallPackObjects);
  }

  /** The object whose raw id is at `oid[at]`. Undefined when there is none. */
  find(oid: Uint8Array, at: number): EntryLocation | undefined {
    for (const pack of this.#large) {
      const position = pack.index.find(oid, at);
      if (position >= 0) return { pack, offset: pack.index.offsetAt(position) };
    }
    if (this.#small.length === 0) return undefined;
    this.#table ??= mergeIndexes(this.#small);
    const number = this.#table.oids.find(oid, at);
    const pack = number < 0 ? undefined : this.#small[this.#table.packs[number] ?? 0];
    return pack === undefined ? undefined : { pack, offset: this.#table.offsets[number] ?? 0 };
  }
}

function mergeIndexes(small: readonly OpenPack[]): { oids: OidTable; packs: Uint32Array; offsets: Float64Array } {
  const total = small.reduce((count, { index }) => count + index.objectCount, 0);
  const merged = { oids: new OidTable(total), packs: new Uint32Array(total), offsets: new Float64Array(total) };
  small.forEach(({ index }, pack) => {
    for (let position = 0; position < index.objectCount; position++) {
      const before = merged.oids.size;
      const number = merged.oids.add(index.oidAt(position));
      if (merged.oids.size === before) continue;
      merged.packs[number] = pack;
      merged.offsets[number] = index.offsetAt(position);
    }
  });
  return merged;
}
