import { objectTypes } from '#shared/git/objects/object-type.ts';
import { OidTable } from '#shared/git/objects/oid-table.ts';
import { parseCommit } from '#shared/git/objects/parse-commit.ts';
import { parseTag } from '#shared/git/objects/parse-tag.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';

export interface CommitNode {
  readonly number: number;
  /** Raw id of its tree. */
  readonly tree: Buffer;
  /** Numbers. */
  readonly parents: readonly number[];
  readonly time: number;
}

/** The commits of a repository, numbered as they are met and each read once. */
export class CommitGraph {
  readonly #database: ObjectDatabase;
  readonly #table = new OidTable();
  readonly #nodes: (CommitNode | undefined)[] = [];

  constructor(database: ObjectDatabase) {
    this.#database = database;
  }

  number(oid: Uint8Array): number {
    return this.#table.add(oid);
  }

  /** A copy. */
  oid(number: number): Buffer {
    return Buffer.from(this.#table.oid(number));
  }

  hex(number: number): string {
    return this.#table.oid(number).toString('hex');
  }

  /** Undefined when there is no such commit here. */
  node(number: number): CommitNode | undefined {
    const known = this.#nodes[number];
    if (known !== undefined) return known;
    const object = this.#database.read(this.oid(number));
    if (object?.type !== objectTypes.commit) return undefined;
    const { tree, parents, time } = parseCommit(object.data);
    const node = { number, tree, parents: parents.map((parent) => this.#table.add(parent)), time };
    this.#nodes[number] = node;
    return node;
  }

  /** The commit that an id stands for, tags taken off; undefined when it stands for something else, or nothing. */
  commitOf(hex: string): CommitNode | undefined {
    let oid: Buffer = Buffer.from(hex, 'hex');
    for (;;) {
      const type = this.#database.readType(oid);
      if (type === objectTypes.commit) return this.node(this.number(oid));
      const tag = type === objectTypes.tag ? this.#database.read(oid) : undefined;
      if (tag === undefined) return undefined;
      oid = parseTag(tag.data).oid;
    }
  }
}
