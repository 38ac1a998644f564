import { CommitGraph, type CommitNode } from '#shared/git/object-graph/commit-graph.ts';
import { selectCommits } from '#shared/git/object-graph/commit-selection.ts';
import type { ObjectFilter } from '#shared/git/object-graph/object-filter.ts';
import { type ObjectType, objectTypes } from '#shared/git/objects/object-type.ts';
import { OidTable } from '#shared/git/objects/oid-table.ts';
import { parseTag } from '#shared/git/objects/parse-tag.ts';
import { modes, TreeCursor } from '#shared/git/objects/tree.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import type { PackContents } from '#shared/git/packs/writing/pack-contents.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';
import type { ObjectId } from '#shared/ids.ts';

/** What a client has and wants. */
export interface SelectionQuestion {
  wants: readonly ObjectId[];
  /** Objects of the repository that the client has. */
  haves: readonly ObjectId[];
  /** Commits at which the client's history ended before this fetch. */
  clientShallow: readonly ObjectId[];
  /** Commits at which the client's history ended and no longer ends after this fetch. */
  unshallow: readonly ObjectId[];
  /** Commits at which the client's history ends after this fetch. */
  cutAfter: readonly ObjectId[];
  filter: ObjectFilter;
  /** Annotated tags to send along with what they point at. */
  tags: readonly { tag: ObjectId; target: ObjectId }[];
}

/** To be sent. */
const selected = 1;
const clientHas = 2;
/** The filter leaves the object out, but not what it refers to. */
const filteredOut = 3;

/** A filter as conditions on each object. Depths count from 0, the root tree of a commit. */
interface FilterRules {
  belowDepth: number;
  belowBytes: number;
  commits: boolean;
  trees: boolean;
  blobs: boolean;
}

function rulesOf(filter: ObjectFilter): FilterRules {
  const parts = filter.kind === 'all-of' ? filter.filters : [filter];
  const has = (type: ObjectType): boolean => parts.every((part) => part.kind !== 'type' || part.type === type);
  return {
    belowDepth: Math.min(...parts.map((part) => (part.kind === 'tree-depth' ? part.depth : Number.POSITIVE_INFINITY))),
    belowBytes: Math.min(...parts.map((part) => (part.kind === 'blob-limit' ? part.bytes : Number.POSITIVE_INFINITY))),
    commits: has('commit'),
    trees: has('tree'),
    blobs: has('blob'),
  };
}

/** Finds the objects that a client wants and does not have. */
export async function selectObjects(
  database: ObjectDatabase,
  question: SelectionQuestion,
  yieldToEventLoop: YieldToEventLoop,
): Promise<PackContents> {
  const selection = new ObjectSelection(database, question.filter, yieldToEventLoop);
  await selection.run(question);
  return { table: selection.table, send: selection.send, has: (number) => (selection.flags[number] ?? 0) === clientHas };
}

class ObjectSelection {
  readonly table = new OidTable(4096);
  readonly send: number[] = [];
  flags = new Uint8Array(4096);
  readonly #database: ObjectDatabase;
  readonly #rules: FilterRules;
  readonly #yieldToEventLoop: YieldToEventLoop;

  constructor(database: ObjectDatabase, filter: ObjectFilter, yieldToEventLoop: YieldToEventLoop) {
    this.#database = database;
    this.#rules = rulesOf(filter);
    this.#yieldToEventLoop = yieldToEventLoop;
  }

  async run(question: SelectionQuestion): Promise<void> {
    const graph = new CommitGraph(this.#database);
    const tips: CommitNode[] = [];
    const direct: Buffer[] = [];
    for (const want of new Set(question.wants)) {
      const commit = graph.commitOf(want);
      if (commit !== undefined) tips.push(commit);
      if (commit === undefined || graph.hex(commit.number) !== want) direct.push(Buffer.from(want, 'hex'));
    }
    for (const oid of question.unshallow) {
      for (const parent of graph.commitOf(oid)?.parents ?? [])
        tips.push(...[graph.node(parent)].filter((node) => node !== undefined));
    }
    const selection = await selectCommits(graph, tips, question, this.#yieldToEventLoop);
    for (const number of selection.edges) {
      this.#mark(graph.oid(number), clientHas);
      const tree = graph.node(number)?.tree;
      if (tree !== undefined) await this.#walkTree(tree, clientHas, 0);
    }
    const wanted = new Set(tips.map(({ number }) => number));
    for (const { number } of selection.commits)
      this.#mark(graph.oid(number), this.#rules.commits || wanted.has(number) ? selected : filteredOut);
    for (const oid of direct) await this.#sendWanted(oid);
    for (const node of selection.commits) await this.#walkTree(node.tree, selected, 0);
    for (const { tag, target } of question.tags) {
      const number = this.table.find(Buffer.from(target, 'hex'));
      if (number >= 0 && this.flags[number] === selected) await this.#sendTags(Buffer.from(tag, 'hex'));
    }
  }

  /** True when the object had no mark before. */
  #mark(oid: Uint8Array, flag: number, at = 0): boolean {
    const number = this.table.add(oid, at);
    if (number >= this.flags.length) {
      const flags = new Uint8Array(number * 2);
      flags.set(this.flags);
      this.flags = flags;
    }
    if (this.flags[number] !== 0) return false;
    this.flags[number] = flag;
    if (flag === selected) this.send.push(number);
    return true;
  }

  /** Selects a tag, tree or blob that the client wants by its own id: filters do not apply to itself. */
  async #sendWanted(oid: Buffer): Promise<void> {
    const type = this.#database.readType(oid);
    if (type === objectTypes.tag) {
      const target = await this.#sendTags(oid);
      if (this.#database.readType(target) !== objectTypes.commit) await this.#sendWanted(target);
    } else if (type === objectTypes.tree) {
      this.#mark(oid, selected);
      await this.#walkInto(oid, selected, 0);
    } else {
      this.#mark(oid, selected);
    }
  }

  /** Selects a tag and the tags it points at. Returns what the last of them points at. */
  async #sendTags(tag: Buffer): Promise<Buffer> {
    let oid = tag;
    for (;;) {
      const object = this.#database.readType(oid) === objectTypes.tag ? this.#database.read(oid) : undefined;
      if (object === undefined) return oid;
      this.#mark(oid, selected);
      oid = parseTag(object.data).oid;
    }
  }

  /** @param depth of the tree itself, 0 for the root tree of a commit */
  async #walkTree(root: Buffer, flag: number, depth: number): Promise<void> {
    const { belowDepth, trees, blobs } = this.#rules;
    if (flag === selected && (depth >= belowDepth || !(trees || blobs))) return;
    if (this.#mark(root, this.#flagOfTree(flag))) await this.#walkInto(root, flag, depth);
  }

  async #walkInto(root: Buffer, flag: number, depth: number): Promise<void> {
    const deepest = flag === selected ? this.#rules.belowDepth : Number.POSITIVE_INFINITY;
    const treeFlag = this.#flagOfTree(flag);
    const stack = [{ cursor: this.#openTree(root), depth: depth + 1 }];
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const pause = this.#yieldToEventLoop();
      if (pause !== undefined) await pause;
      const { cursor } = top;
      if (!cursor.next()) {
        stack.pop();
        continue;
      }
      if (cursor.mode === modes.submodule || top.depth >= deepest) continue;
      if (cursor.mode === modes.tree) {
        if (this.#mark(cursor.data, treeFlag, cursor.oidAt))
          stack.push({ cursor: this.#openTree(cursor.oid()), depth: top.depth + 1 });
      } else if (flag === clientHas || this.#passes(cursor)) {
        this.#mark(cursor.data, flag, cursor.oidAt);
      }
    }
  }

  #flagOfTree(flag: number): number {
    return flag === selected && !this.#rules.trees ? filteredOut : flag;
  }

  #passes(cursor: TreeCursor): boolean {
    const { belowBytes, blobs } = this.#rules;
    if (belowBytes === 0 || !blobs) return false;
    if (belowBytes === Number.POSITIVE_INFINITY) return true;
    const location = this.#database.find(cursor.data, cursor.oidAt);
    return location === undefined || this.#database.readSize(location) < belowBytes;
  }

  #openTree(oid: Buffer): TreeCursor {
    const object = this.#database.read(oid);
    if (object?.type !== objectTypes.tree) throw new Error(`tree ${oid.toString('hex')} is missing`);
    return new TreeCursor(object.data);
  }
}
