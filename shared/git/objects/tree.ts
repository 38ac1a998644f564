import { oidBytes } from '#shared/git/objects/oid-table.ts';

/** The modes of tree entries. */
export const modes = { tree: 0o40000, file: 0o100644, executable: 0o100755, symlink: 0o120000, submodule: 0o160000 } as const;

const kindBits = 0o170000;
const regularFile = 0o100000;
const ownerMayExecute = 0o100;

/** The mode that git reads, whatever permissions old clients wrote into it. Undefined for a kind that git does not have. */
export function canonicalMode(mode: number): number | undefined {
  const kind = mode & kindBits;
  if (kind === regularFile) return (mode & ownerMayExecute) === 0 ? modes.file : modes.executable;
  return kind === modes.tree || kind === modes.symlink || kind === modes.submodule ? kind : undefined;
}

/** Iterates over the entries of a tree that passed `checkTree`, without creating an object for each. */
export class TreeCursor {
  readonly data: Buffer;
  /** One of `modes`. */
  mode = 0;
  nameStart = 0;
  nameEnd = 0;
  /** Index of the raw id in `data`. */
  oidAt = 0;
  #next = 0;

  constructor(data: Buffer) {
    this.data = data;
  }

  /** Moves to the next entry. False at the end. */
  next(): boolean {
    const { data } = this;
    let at = this.#next;
    if (at >= data.length) return false;
    let mode = 0;
    for (let byte = data[at++] ?? 0x20; byte !== 0x20; byte = data[at++] ?? 0x20) mode = mode * 8 + (byte & 7);
    this.mode = canonicalMode(mode) ?? 0;
    this.nameStart = at;
    this.nameEnd = data.indexOf(0, at);
    this.oidAt = this.nameEnd + 1;
    if (this.nameEnd < 0 || this.oidAt + oidBytes > data.length) throw new Error('a stored tree is malformed');
    this.#next = this.oidAt + oidBytes;
    return true;
  }

  name(): string {
    return this.data.toString('utf8', this.nameStart, this.nameEnd);
  }

  oid(): Buffer {
    return this.data.subarray(this.oidAt, this.oidAt + oidBytes);
  }
}
