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

/** Bits, as one blob can be both. */
const specialFiles: readonly [bit: number, file: SpecialFile][] = [
  [1, '.gitmodules'],
  [2, '.gitattributes'],
];

/**
 * Checks each object of a pack, and that whatever they need is in the pack or was there before. As that holds for every
 * pack that ever came in, everything reachable from any object is then there: no walk over history is needed.
 */
export class LinkCheck {
  /** Whether `specialFiles` has any to tell of. */
  hasSpecialFiles = false;
  /** What is odd about objects, and no reason to refuse them. */
  readonly warnings = new Warnings();
  readonly #table = new OidTable(1024);
  /** By number in the table: type of the object in the pack, and type under which others need it; 0 for neither. */
  #present = new Uint8Array(1024);
  #needed = new Uint8Array(1024);
  /** By number: which special files some tree has it for. */
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

  /** @param needsCommits false where commits are taken without their history */
  constructor(needsCommits = true, tolerated = nothingTolerated) {
    this.#needsCommits = needsCommits;
    this.#tolerated = tolerated;
  }

  /** @throws GitFault naming the object when it is not sound, or comes twice */
  addObject(type: number, oid: Buffer, content: Buffer | undefined): void {
    const number = this.#add(oid, 0);
    this.#refuseTwice(number, type, oid);
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
   * @param oid of a base that the pack lacks and is completed with
   * @throws GitFault when a delta has made it after all: the pack would have two entries of one id, perhaps each the other's base
   */
  checkBase(type: number, oid: Buffer): void {
    const number = this.#table.find(oid);
    if (number >= 0) this.#refuseTwice(number, type, oid);
  }

  #refuseTwice(number: number, type: number, oid: Buffer): void {
    if (this.#present[number] !== 0) throw new GitFault(`${describeObject(type, oid)} is in the pack twice`);
  }

  /**
   * @param stored type of an object of the repository, undefined when it has none of that id
   * @throws GitFault naming what is missing or of the wrong type
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

  /** What trees of the pack have for `.gitmodules` and `.gitattributes`: anything, as the content is not looked at here. */
  *specialFiles(): Generator<{ file: SpecialFile; oid: Buffer }> {
    for (let number = 0; number < this.#table.size; number++) {
      const bits = this.#special[number] ?? 0;
      for (const [bit, file] of specialFiles) if ((bits & bit) !== 0) yield { file, oid: this.#table.oid(number) };
    }
  }

  /** How the pack hangs together with the rest of the repository; undefined when that is not simple. */
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
    if (found === undefined) return new GitFault(`${object} is needed but was not sent, and is not in the repository`);
    return new GitFault(`${object} is a ${typeName(found)} in truth`);
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
