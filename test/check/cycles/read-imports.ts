import { globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';

/** One import of a file by another; a type import, a re-export and `import()` are imports too. */
export interface Import {
  /** Path from the root, as 'shared/core/apps/apps.ts'. */
  from: string;
  /** Counted from 1. */
  line: number;
  to: string;
}

/** Code that only tests run may import whatever it needs. */
const forTests = /\.test\.ts$|\/(testing|contract|fake)\/|\/fake-[^/]*$/;

const statement = /^(?:import|export)\b[^;'"]*?from '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm;

/** Every import between the source files of `rooms`, which are folders in `root`, in the order of the files' paths. */
export function readImports(root: string, rooms: readonly string[]): Import[] {
  const files = globSync(
    rooms.map((room) => `${room}/**/*.{ts,mjs}`),
    { cwd: root },
  )
    .filter((file) => !forTests.test(file))
    .toSorted();
  const known = new Set(files);
  return files.flatMap((from) => {
    const text = readFileSync(posix.join(root, from), 'utf8');
    return text
      .matchAll(statement)
      .map((match) => ({
        from,
        line: text.slice(0, match.index).split('\n').length,
        to: resolve(from, match[1] ?? match[2] ?? match[3] ?? ''),
      }))
      .filter(({ to }) => known.has(to))
      .toArray();
  });
}

/** `#shared/x.ts` is named from the root, `./x.ts` from its importer; a package resolves to no file. */
function resolve(importer: string, specifier: string): string {
  if (specifier.startsWith('#')) return specifier.slice(1);
  return specifier.startsWith('.') ? posix.join(posix.dirname(importer), specifier) : '';
}
