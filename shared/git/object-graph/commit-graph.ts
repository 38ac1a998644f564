import { objectTypes } from '#shared/git/objects/object-type.ts';
import { OidTable } from '#shared/git/objects/oid-table.ts';
import { parseCommit } from '#shared/git/objects/parse-commit.ts';
import { parseTag } from '#shared/git/objects/parse-tag.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';

/** A commit in the graph. */
export interface CommitNode {
  /** In the graph's numbering. */
  readonly number: number;
  /** Raw id of its tree. */
  readonly tree: Buffer;
  /** Numbers of the parents. */
  readonly parents: readonly number[];
  /** Seconds since the epoch, by the committer's clock. */
  readonly time: number;
}

/** The commits of a repository. They are numbered in the order in which they are met, and each is read once. */
export class CommitGraph {
  readonly #database: ObjectDatabase;
  readonly #table = new OidTable();
  readonly #nodes: (CommitNode | undefined)[] = [];

  constructor(database: ObjectDatabase) {
    this.#database = database;
  }

  /** The number of a commit. @param oid raw */
  number(oid: Uint8Array): number {
    return this.#table.add(oid);
  }

  /** The raw id of a commit; a copy. */
  oid(number: number): Buffer {
    return Buffer.from(this.#table.oid(number));
  }

  /** The id of a commit in hexadecimal. */
  hex(number: number): string {
    return this.#table.oid(number).toString('hex');
  }

  /** Undefined when the repository does not have the commit. */
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

  /** The commit with this id, or the one that the tag with this id points at; undefined for other objects. */
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
