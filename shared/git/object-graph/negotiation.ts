import { CommitGraph, type CommitNode } from '#shared/git/object-graph/commit-graph.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';
import type { ObjectId } from '#shared/ids.ts';

/** What the negotiation of a fetch has found so far. */
export interface Negotiation {
  /** The first want that the repository does not have. */
  missing: ObjectId | undefined;
  /** The haves that the repository has. */
  common: ObjectId[];
  /** Every want is a descendant of a common commit: more haves would not make the pack much smaller. */
  ready: boolean;
}

/** One round of a negotiation. */
export async function negotiateFetch(
  database: ObjectDatabase,
  { wants, haves, clientShallow }: { wants: readonly ObjectId[]; haves: readonly ObjectId[]; clientShallow: readonly ObjectId[] },
  yieldToEventLoop: YieldToEventLoop,
): Promise<Negotiation> {
  const missing = wants.find((oid) => database.find(Buffer.from(oid, 'hex')) === undefined);
  const common = haves.filter((oid) => database.find(Buffer.from(oid, 'hex')) !== undefined);
  const ready =
    missing === undefined &&
    common.length > 0 &&
    (await allReach(database, wants, common, new Set(clientShallow), yieldToEventLoop));
  return { missing, common, ready };
}

/** Whether each want is a descendant of a commit in `common`, or is one. Wants that are not commits have no history. */
async function allReach(
  database: ObjectDatabase,
  wants: readonly ObjectId[],
  common: readonly ObjectId[],
  shallow: ReadonlySet<string>,
  yieldToEventLoop: YieldToEventLoop,
): Promise<boolean> {
  const graph = new CommitGraph(database);
  const commonNodes = common.flatMap((oid) => graph.commitOf(oid) ?? []);
  const oldest = commonNodes.reduce((time, node) => Math.min(time, node.time), Number.POSITIVE_INFINITY);
  const reaches = new Map<number, boolean>(commonNodes.map(({ number }) => [number, true]));
  for (const want of wants) {
    const start = graph.commitOf(want);
    if (start === undefined) continue;
    const path: { node: CommitNode; next: number }[] = [{ node: start, next: 0 }];
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const pause = yieldToEventLoop();
      if (pause !== undefined) await pause;
      const { number, parents, time } = top.node;
      const known = reaches.get(number);
      if (known !== undefined) {
        path.pop();
        const below = path.at(-1);
        if (known && below !== undefined) reaches.set(below.node.number, true);
        continue;
      }
      // No common commit is older than the oldest of them.
      const parent = time < oldest || shallow.has(graph.hex(number)) ? undefined : parents[top.next++];
      const node = parent === undefined ? undefined : graph.node(parent);
      if (node === undefined) reaches.set(number, false);
      else path.push({ node, next: 0 });
    }
    if (reaches.get(start.number) !== true) return false;
  }
  return true;
}
