import type { Cycle } from './find-cycles.ts';

/** The complaint about a cycle: its folders or files, and each import of its shortest circle by file and line. */
export function describeCycle({ nodes, imports }: Cycle): string {
  return [
    `These import each other in a circle: ${nodes.join(', ')}. The shortest circle is made by`,
    ...imports.map(({ from, line, to }) => `  ${from}:${line} imports ${to}`),
  ].join('\n');
}
