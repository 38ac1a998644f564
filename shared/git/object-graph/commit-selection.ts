import type { CommitGraph, CommitNode } from '#shared/git/object-graph/commit-graph.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';
import type { ObjectId } from '#shared/ids.ts';

/** Which commits to send to a client. */
export interface SelectedCommits {
  /** The commits that the client lacks, newest first. */
  commits: CommitNode[];
  /** Numbers of the commits that the client has and that are parents of commits it lacks: their trees have most in common. */
  edges: Set<number>;
}

/** Reachable from the tips. */
const seen = 1;
/** Reachable from what the client has. */
const uninteresting = 2;

/** Finds the commits that are reachable from the tips and not from what the client has. Walks from the newest to the oldest. */
export async function selectCommits(
  graph: CommitGraph,
  tips: readonly CommitNode[],
  {
    haves,
    clientShallow,
    cutAfter,
    unshallow,
  }: {
    haves: readonly ObjectId[];
    clientShallow: readonly ObjectId[];
    cutAfter: readonly ObjectId[];
    unshallow: readonly ObjectId[];
  },
  yieldToEventLoop: YieldToEventLoop,
): Promise<SelectedCommits> {
  const flags: number[] = [];
  const numbers = (oids: readonly ObjectId[]): Set<number> => new Set(oids.map((oid) => graph.number(Buffer.from(oid, 'hex'))));
  const cutBefore = numbers(clientShallow);
  const cut = numbers(cutAfter);
  const queue = new NewestFirst();
  const walked: CommitNode[] = [];
  let interesting = 0;

  const enqueue = (node: CommitNode, flag: number): void => {
    const now = flags[node.number] ?? 0;
    if (now === 0) {
      queue.push(node);
      if (flag === seen) interesting++;
      flags[node.number] = flag;
    } else if (now === seen && flag !== seen) {
      spread(node);
    }
  };
  /** The client has a commit that was taken for missing. It also has all ancestors of that commit: they are marked here. */
  const spread = (first: CommitNode): void => {
    const open = [first];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (flags[node.number] !== seen) continue;
      flags[node.number] = uninteresting;
      if (queue.has(node.number)) interesting--;
      if (cutBefore.has(node.number)) continue;
      for (const parent of node.parents) {
        const known = flags[parent] === seen ? graph.node(parent) : undefined;
        if (known !== undefined) open.push(known);
      }
    }
  };

  // What the client has comes first, so that a tip among it is not taken for missing.
  for (const oid of [...haves, ...unshallow]) {
    const node = graph.commitOf(oid);
    if (node !== undefined) enqueue(node, uninteresting);
  }
  for (const tip of tips) enqueue(tip, seen);
  for (let node = queue.pop(); node !== undefined; node = queue.pop()) {
    const pause = yieldToEventLoop();
    if (pause !== undefined) await pause;
    const flag = flags[node.number] ?? seen;
    if (flag === seen) {
      interesting--;
      walked.push(node);
    } else if (interesting === 0 && node.time < (walked.at(-1)?.time ?? Number.POSITIVE_INFINITY)) {
      // No missing commit is left in the queue, and the rest is older than all that were found.
      break;
    }
    if ((flag === seen ? cut : cutBefore).has(node.number)) continue;
    for (const parent of node.parents) {
      const known = graph.node(parent);
      if (known !== undefined) enqueue(known, flag);
      else if (flag === seen) throw new Error(`commit ${graph.hex(parent)} is missing`);
    }
  }

  const commits = walked.filter(({ number }) => flags[number] === seen);
  const edges = new Set<number>();
  for (const { number, parents } of commits) {
    if (cut.has(number)) continue;
    for (const parent of parents) if (flags[parent] === uninteresting) edges.add(parent);
  }
  return { commits, edges };
}

/** A priority queue of commits: the newest comes first. */
class NewestFirst {
  readonly #heap: CommitNode[] = [];
  readonly #inside = new Set<number>();

  has(number: number): boolean {
    return this.#inside.has(number);
  }

  push(node: CommitNode): void {
    const heap = this.#heap;
    this.#inside.add(node.number);
    let at = heap.push(node) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || parent.time >= node.time) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = node;
  }

  pop(): CommitNode | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined) return undefined;
    this.#inside.delete(top.number);
    if (heap.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if ((heap[child + 1]?.time ?? Number.NEGATIVE_INFINITY) > (heap[child]?.time ?? Number.NEGATIVE_INFINITY)) child++;
      const below = heap[child];
      if (below === undefined || below.time <= last.time) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = last;
    return top;
  }
}
