import { GitFault } from '#shared/git/git-fault.ts';
import { CommitGraph } from '#shared/git/object-graph/commit-graph.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';
import type { ObjectId } from '#shared/ids.ts';

/** How much of the history the client wants. */
export type Deepen =
  | { kind: 'depth'; depth: number; relative: boolean }
  | { kind: 'since'; seconds: number }
  | { kind: 'not'; refs: string[] };

/** Changes of where the client's history ends. */
export interface ShallowChange {
  /** Commits at which it ends from now on. */
  shallow: ObjectId[];
  /** Commits at which it ended before and no longer ends. */
  unshallow: ObjectId[];
}

/** A client's request to change where its history ends. */
export interface ShallowQuestion {
  wants: readonly ObjectId[];
  /** Commits at which the client's history ends now. */
  clientShallow: readonly ObjectId[];
  deepen: Deepen;
  /** Tips of the refs of `deepen-not`. */
  excluded: readonly ObjectId[];
}

/** How the client's history changes. @throws GitFault when no commit is left */
export async function findShallow(
  database: ObjectDatabase,
  question: ShallowQuestion,
  yieldToEventLoop: YieldToEventLoop,
): Promise<ShallowChange> {
  const { deepen, clientShallow } = question;
  const graph = new CommitGraph(database);
  const included =
    deepen.kind === 'depth'
      ? await withinDepth(graph, question, deepen, yieldToEventLoop)
      : await newerThan(graph, question, deepen, yieldToEventLoop);
  if (included.size === 0) throw new GitFault('no commits selected for shallow requests');
  const before = new Set<string>(clientShallow);
  const shallow: ObjectId[] = [];
  const unshallow: ObjectId[] = [];
  for (const number of included) {
    const node = graph.node(number);
    const cut = node !== undefined && node.parents.some((parent) => !included.has(parent));
    const hex = graph.hex(number) as ObjectId;
    if (cut && !before.has(hex)) shallow.push(hex);
    if (!cut && before.has(hex)) unshallow.push(hex);
  }
  return { shallow, unshallow };
}

/** Numbers of the commits within a depth. The tips are at depth 1. */
async function withinDepth(
  graph: CommitGraph,
  { wants, clientShallow }: ShallowQuestion,
  { depth, relative }: { depth: number; relative: boolean },
  yieldToEventLoop: YieldToEventLoop,
): Promise<Set<number>> {
  const included = new Set<number>();
  // Relative to where the client's history ends now: those commits are the first step, and what is above them stays.
  const starts = relative && clientShallow.length > 0 ? clientShallow : wants;
  let level = new Set(starts.flatMap((oid) => graph.commitOf(oid)?.number ?? []));
  const levels = starts === clientShallow ? depth + 1 : depth;
  for (let step = 0; step < levels && level.size > 0; step++) {
    const next = new Set<number>();
    for (const number of level) {
      const pause = yieldToEventLoop();
      if (pause !== undefined) await pause;
      included.add(number);
      for (const parent of graph.node(number)?.parents ?? []) if (!included.has(parent)) next.add(parent);
    }
    level = next;
  }
  return included;
}

/** Numbers of the commits since a time, or of those that are not reachable from some tips. */
async function newerThan(
  graph: CommitGraph,
  { wants, excluded }: ShallowQuestion,
  deepen: { kind: 'since'; seconds: number } | { kind: 'not' },
  yieldToEventLoop: YieldToEventLoop,
): Promise<Set<number>> {
  const since = deepen.kind === 'since' ? deepen.seconds : 0;
  const outside = deepen.kind === 'not' ? await ancestors(graph, excluded, () => true, yieldToEventLoop) : new Set<number>();
  return await ancestors(
    graph,
    wants,
    (number) => !outside.has(number) && (graph.node(number)?.time ?? 0) >= since,
    yieldToEventLoop,
  );
}

async function ancestors(
  graph: CommitGraph,
  tips: readonly ObjectId[],
  keep: (number: number) => boolean,
  yieldToEventLoop: YieldToEventLoop,
): Promise<Set<number>> {
  const found = new Set(tips.flatMap((oid) => graph.commitOf(oid)?.number ?? []).filter(keep));
  // The loop also visits what is added to the set while it runs.
  for (const number of found) {
    const pause = yieldToEventLoop();
    if (pause !== undefined) await pause;
    for (const parent of graph.node(number)?.parents ?? []) if (keep(parent)) found.add(parent);
  }
  return found;
}
