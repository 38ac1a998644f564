import { posix } from 'node:path';
import type { Import } from './read-imports.ts';

/** Nodes of a graph that all reach each other. */
export interface Cycle {
  /** Folders or files, sorted. */
  nodes: readonly string[];
  /** The imports that make one of the shortest circles among them, in its order. */
  imports: readonly Import[];
}

/** Files that import each other in a circle. */
export const findFileCycles = (imports: readonly Import[]): Cycle[] => findCycles(imports, (file) => file);

/**
 * Folders that import each other in a circle. A folder is the files directly in it: `shared/git` and `shared/git/packs` are
 * two nodes.
 */
export const findFolderCycles = (imports: readonly Import[]): Cycle[] => findCycles(imports, posix.dirname);

type Targets = ReadonlyMap<string, ReadonlySet<string>>;

function findCycles(imports: readonly Import[], nodeOf: (file: string) => string): Cycle[] {
  const targets = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    if (nodeOf(from) === nodeOf(to)) continue;
    targets.set(nodeOf(from), (targets.get(nodeOf(from)) ?? new Set()).add(nodeOf(to)));
  }
  return strongComponents(targets)
    .filter((nodes) => nodes.length > 1)
    .map((nodes) => {
      const circle = shortestCircle(nodes, targets);
      const importsOf = (node: string, index: number) =>
        imports.filter(({ from, to }) => nodeOf(from) === node && nodeOf(to) === circle[(index + 1) % circle.length]);
      return { nodes: nodes.toSorted(), imports: circle.flatMap(importsOf) };
    })
    .toSorted((one, other) => ((one.nodes[0] ?? '') < (other.nodes[0] ?? '') ? -1 : 1));
}

/** Tarjan's algorithm: the nodes in groups within which each reaches each. */
function strongComponents(targets: Targets): string[][] {
  const components: string[][] = [];
  const order = new Map<string, number>();
  const stack: string[] = [];
  const visit = (node: string): number => {
    const index = order.size;
    let lowest = index;
    order.set(node, index);
    stack.push(node);
    for (const target of targets.get(node) ?? []) {
      if (!order.has(target)) lowest = Math.min(lowest, visit(target));
      else if (stack.includes(target)) lowest = Math.min(lowest, order.get(target) ?? lowest);
    }
    if (lowest === index) components.push(stack.splice(stack.indexOf(node)));
    return lowest;
  };
  for (const node of targets.keys()) if (!order.has(node)) visit(node);
  return components;
}

/** The nodes of one shortest way from a node of `nodes`, which reach each other, back to itself. */
function shortestCircle(nodes: readonly string[], targets: Targets): readonly string[] {
  return nodes.map((node) => shortestWayBack(node, targets)).reduce((one, other) => (other.length < one.length ? other : one));
}

function shortestWayBack(start: string, targets: Targets): readonly string[] {
  const ways: (readonly string[])[] = [[start]];
  const seen = new Set<string>();
  for (const way of ways) {
    for (const target of targets.get(way.at(-1) ?? start) ?? []) {
      if (target === start) return way;
      if (seen.has(target)) continue;
      seen.add(target);
      ways.push([...way, target]);
    }
  }
  throw new RangeError(`${start} is in no circle`);
}
