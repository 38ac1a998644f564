import type { SourceTree } from './source-tree.ts';

const most = 2000;

/** Directories that match a pattern of a workspace: `packages/*`, `apps/**` or `server`. Without those whose names begin with a dot. */
export async function expandDirectories(source: SourceTree, pattern: string): Promise<readonly string[]> {
  let directories: readonly string[] = [''];
  for (const part of pattern.split('/').filter((word) => word !== '' && word !== '.')) {
    const next = directories.map((directory) => expandPart(source, directory, part));
    directories = (await Promise.all(next)).flat().slice(0, most);
  }
  return directories.filter((directory) => directory !== '');
}

async function expandPart(source: SourceTree, directory: string, part: string): Promise<readonly string[]> {
  const join = (name: string): string => (directory === '' ? name : `${directory}/${name}`);
  if (part === '..') return [];
  if (!part.includes('*')) return [join(part)];
  const names = (await source.list(directory)).filter((name) => name !== 'node_modules' && !name.startsWith('.'));
  if (part === '**') {
    const below = await Promise.all(names.map((name) => expandPart(source, join(name), '**')));
    return [directory, ...below.flat()].slice(0, most);
  }
  return names.filter((name) => matches(name, part)).map(join);
}

/** `*` stands for any characters. No regular expression: a tenant's pattern of many stars would take for ever. */
function matches(name: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first) || !name.endsWith(last)) return false;
  const end = name.length - last.length;
  let from = first.length;
  for (const part of rest) {
    const at = name.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return from <= end;
}
