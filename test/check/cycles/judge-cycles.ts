import type { Cycle } from './find-cycles.ts';

/**
 * What is wrong with the cycles of one kind of node; nothing when each is known and each known one is still there.
 * @param known groups of folders or files that may import each other in circles for now; the list may only shrink
 */
export function judgeCycles(cycles: readonly Cycle[], known: readonly (readonly string[])[]): string[] {
  const fresh = cycles.filter(({ nodes }) => !known.some((group) => nodes.every((node) => group.includes(node))));
  const inCycles = new Set(cycles.flatMap(({ nodes }) => nodes));
  const fixed = known.flat().filter((node) => !inCycles.has(node));
  return [
    ...fresh.map(({ nodes, imports }) =>
      [
        `These import each other in a circle: ${nodes.join(', ')}. The shortest circle is made by`,
        ...imports.map(({ from, line, to }) => `  ${from}:${line} imports ${to}`),
      ].join('\n'),
    ),
    ...fixed.map((node) => `${node} is in no cycle any more: remove it from test/check/cycles/known-cycles.ts.`),
  ];
}
