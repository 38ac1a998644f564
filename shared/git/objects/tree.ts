import { oidBytes } from '#shared/git/packs/oid-table.ts';

export const modes = { tree: 0o40000, file: 0o100644, executable: 0o100755, symlink: 0o120000, submodule: 0o160000 } as const;

/** Goes through the entries of a tree without making an object of each. Only for trees that passed `checkTree`. */
export class TreeCursor {
  readonly data: Buffer;
  mode = 0;
  nameStart = 0;
  nameEnd = 0;
  /** Where in `data` the raw id is. */
  oidAt = 0;
  #next = 0;

  constructor(data: Buffer) {
    this.data = data;
  }

  /** False at the end. */
  next(): boolean {
    const { data } = this;
    let at = this.#next;
    if (at >= data.length) return false;
    let mode = 0;
    for (let byte = data[at++] ?? 0x20; byte !== 0x20; byte = data[at++] ?? 0x20) mode = mode * 8 + (byte & 7);
    this.mode = mode;
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
