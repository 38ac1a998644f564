import {
  type EntryHeader,
  emptyEntryHeader,
  longestEntryHeader,
  packTrailerBytes,
  readEntryHeader,
} from '#shared/git/packs/format/pack-entry.ts';
import { PackIndex } from '#shared/git/packs/format/pack-index.ts';
import type { PackLinks } from '#shared/git/packs/format/pack-links.ts';
import { type ByteLocation, openBytes, type RandomAccess } from '#shared/git/packs/reading/random-access.ts';

/** Where the files of a pack are. Plain data, which can be sent to a thread. */
export interface PackLocation {
  /** Unique among all packs of all repositories. */
  key: string;
  pack: ByteLocation;
  index: ByteLocation;
  /** JSON of `PackLinks`, or of null. */
  links: ByteLocation;
  /** Its files are deleted soon: they are not kept open between two tasks. */
  isShortLived?: true;
  /** Nothing needed its objects when the garbage was last collected. */
  unreachable?: boolean;
}

/** A pack open for reading. Its index is in memory; the pack file is opened when it is first read. */
export class OpenPack {
  readonly key: string;
  readonly index: PackIndex;
  readonly isShortLived: boolean;
  readonly #location: PackLocation;
  #links: PackLinks | null | undefined;
  #bytes: RandomAccess | undefined;
  readonly #header = emptyEntryHeader();

  constructor(location: PackLocation) {
    this.key = location.key;
    this.#location = location;
    this.isShortLived = location.isShortLived === true;
    const bytes = openBytes(location.index);
    this.index = new PackIndex(Buffer.from(bytes.read(0, bytes.size)));
    bytes.close();
  }

  /** The pack file. @throws PackGone when it was deleted */
  get bytes(): RandomAccess {
    this.#bytes ??= openBytes(this.#location.pack);
    return this.#bytes;
  }

  /** The head of the entry at `offset`. The next call overwrites it. `baseOidAt` is relative to `offset`. */
  headerAt(offset: number): EntryHeader {
    const bytes = this.bytes.read(offset, longestEntryHeader);
    if (!readEntryHeader(bytes, 0, bytes.length, this.#header)) throw new Error('a stored pack is cut short');
    return this.#header;
  }

  /** Where the entry at `offset` ends. */
  endOf(offset: number): number {
    const rank = this.index.rankOf(offset);
    if (rank < 0) throw new Error('a delta points between two objects');
    return this.index.offsetOfRank(rank + 1) ?? this.bytes.size - packTrailerBytes;
  }

  /** Null when they are not known. */
  get links(): PackLinks | null {
    if (this.#links === undefined) {
      const bytes = openBytes(this.#location.links);
      this.#links = JSON.parse(bytes.read(0, bytes.size).toString('utf8')) as PackLinks | null;
      bytes.close();
    }
    return this.#links;
  }

  /** Whether its file is open. */
  get isReading(): boolean {
    return this.#bytes !== undefined;
  }

  /** Closes the pack file. It is opened again when it is needed. */
  close(): void {
    this.#bytes?.close();
    this.#bytes = undefined;
  }
}
