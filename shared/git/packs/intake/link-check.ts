import { GitFault } from '#shared/git/git-fault.ts';
import { checkCommit, checkTag, type LinkSink } from '#shared/git/objects/check-commit.ts';
import { checkTree, type SpecialFile, type SpecialFileSink, type TreeLinkSink } from '#shared/git/objects/check-tree.ts';
import { objectTypes, typeName } from '#shared/git/objects/object-type.ts';
import { OidTable } from '#shared/git/objects/oid-table.ts';
import { nothingTolerated, type Tolerated } from '#shared/git/objects/tolerable-faults.ts';
import { modes } from '#shared/git/objects/tree.ts';
import { type WarningSink, Warnings } from '#shared/git/objects/warnings.ts';
import { mostLinks, type PackLinks } from '#shared/git/packs/format/pack-links.ts';
import { describeObject } from '#shared/git/packs/intake/pack-scanner.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';

/** Each has a bit, because one blob can be both. */
const specialFiles: readonly [bit: number, file: SpecialFile][] = [
  [1, '.gitmodules'],
  [2, '.gitattributes'],
];

/**
 * Checks each object of a pack, and that all objects they refer to are in the pack or were in the repository before. Since that
 * holds for every pack that was ever received, all objects reachable from them exist: no walk over the history is needed.
 */
export class LinkCheck {
  /** Whether `specialFiles` will yield any. */
  hasSpecialFiles = false;
  /** Faults of objects that are no reason to reject them. */
  readonly warnings = new Warnings();
  readonly #table = new OidTable(1024);
  /** By number in the table: the type of the object in the pack, or 0. */
  #present = new Uint8Array(1024);
  /** By number: the type under which other objects refer to it, or 0. */
  #needed = new Uint8Array(1024);
  /** By number: bits of the special files that trees use it as. */
  #special = new Uint8Array(1024);

  readonly #needsCommits: boolean;
  readonly #linkByHex: LinkSink = (type, hex) => {
    if (type !== 'commit' || this.#needsCommits) this.#need(Buffer.from(hex, 'hex'), 0, objectTypes[type]);
  };
  readonly #linkOfTree: TreeLinkSink = (mode, data, at) =>
    this.#need(data, at, mode === modes.tree ? objectTypes.tree : objectTypes.blob);
  readonly #specialOfTree: SpecialFileSink = (file, data, at) => {
    const number = this.#add(data, at);
    this.hasSpecialFiles = true;
    for (const [bit, name] of specialFiles) if (name === file) this.#special[number] = (this.#special[number] ?? 0) | bit;
  };

  readonly #tolerated: Tolerated;

  /** @param needsCommits false when commits are received without their history */
  constructor(needsCommits = true, tolerated = nothingTolerated) {
    this.#needsCommits = needsCommits;
    this.#tolerated = tolerated;
  }

  /** @throws GitFault naming the object when it is invalid, or in the pack twice */
  addObject(type: number, oid: Buffer, content: Buffer | undefined): void {
    const number = this.#add(oid, 0);
    this.#rejectDuplicate(number, type, oid);
    this.#present[number] = type;
    if (content === undefined || type === objectTypes.blob) return;
    const warn: WarningSink = (id, text) => this.warnings.add(oid, id, text);
    try {
      if (type === objectTypes.tree) checkTree(content, this.#linkOfTree, this.#specialOfTree, this.#tolerated, warn);
      else if (type === objectTypes.commit) checkCommit(content, this.#linkByHex, this.#tolerated);
      else checkTag(content, this.#linkByHex, this.#tolerated, warn);
    } catch (error) {
      throw error instanceof GitFault ? new GitFault(`${describeObject(type, oid)} ${error.message}`) : error;
    }
  }

  /**
   * Called when all objects of the pack are known.
   * @param oid of a base that was appended to a thin pack
   * @throws GitFault when a delta of the pack is the same object: the pack would have two entries with one id, and each could be the
   * base of the other
   */
  checkBase(type: number, oid: Buffer): void {
    const number = this.#table.find(oid);
    if (number >= 0) this.#rejectDuplicate(number, type, oid);
  }

  #rejectDuplicate(number: number, type: number, oid: Buffer): void {
    if (this.#present[number] !== 0) throw new GitFault(`${describeObject(type, oid)} is in the pack twice`);
  }

  /**
   * @param stored type of an object in the repository; undefined when it has no such object
   * @throws GitFault naming an object that is missing, or has another type than the objects that refer to it say
   */
  async finish(stored: (oid: Buffer) => number | undefined, yieldToEventLoop: YieldToEventLoop): Promise<void> {
    for (let number = 0; number < this.#table.size; number++) {
      const needed = this.#needed[number] ?? 0;
      if (needed === 0) continue;
      const present = this.#present[number] ?? 0;
      const found = present !== 0 ? present : stored(this.#table.oid(number));
      if (found !== needed) throw this.#wrongLink(number, needed, found);
      const pause = yieldToEventLoop();
      if (pause !== undefined) await pause;
    }
  }

  /** The blobs (or whatever else) that trees of the pack use as `.gitmodules` and `.gitattributes`. Their content was not checked. */
  *specialFiles(): Generator<{ file: SpecialFile; oid: Buffer }> {
    for (let number = 0; number < this.#table.size; number++) {
      const bits = this.#special[number] ?? 0;
      for (const [bit, file] of specialFiles) if ((bits & bit) !== 0) yield { file, oid: this.#table.oid(number) };
    }
  }

  /** The links of the pack; undefined when there are more than `mostLinks`. */
  packLinks(): PackLinks | undefined {
    const roots: string[] = [];
    const needs: string[] = [];
    for (let number = 0; number < this.#table.size && roots.length + needs.length <= mostLinks; number++) {
      const [present, needed] = [this.#present[number] ?? 0, this.#needed[number] ?? 0];
      if (present !== 0 && needed === 0) roots.push(this.#table.oid(number).toString('hex'));
      if (present === 0 && needed === objectTypes.commit) needs.push(this.#table.oid(number).toString('hex'));
    }
    return roots.length + needs.length <= mostLinks ? { roots, needs } : undefined;
  }

  #wrongLink(number: number, needed: number, found: number | undefined): GitFault {
    const object = describeObject(needed, this.#table.oid(number));
    if (found === undefined) return new GitFault(`${object} is needed, but was neither sent nor is in the repository`);
    return new GitFault(`${object} is in fact a ${typeName(found)}`);
  }

  #need(bytes: Buffer, at: number, type: number): void {
    const number = this.#add(bytes, at);
    const needed = this.#needed[number] ?? 0;
    if (needed !== 0 && needed !== type) {
      const hex = this.#table.oid(number).toString('hex');
      throw new GitFault(`uses ${hex} as a ${typeName(type)}, others as a ${typeName(needed)}`);
    }
    this.#needed[number] = type;
  }

  #add(bytes: Buffer, at: number): number {
    const number = this.#table.add(bytes, at);
    if (number >= this.#present.length) {
      this.#present = grown(this.#present, number * 2);
      this.#needed = grown(this.#needed, number * 2);
      this.#special = grown(this.#special, number * 2);
    }
    return number;
  }
}

function grown(bytes: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length);
  larger.set(bytes);
  return larger;
}
