import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { describeCycle } from './describe-cycle.ts';
import { type Cycle, findFileCycles, findFolderCycles } from './find-cycles.ts';
import { readImports } from './read-imports.ts';

const readFixture = (name: string) => {
  const root = fileURLToPath(new URL(`../../fixtures/cycles/${name}`, import.meta.url));
  return readImports(root, ['shared']);
};

const list = (cycles: readonly Cycle[]): string[] => cycles.map(({ nodes }) => nodes.join(' '));

describe('the search for cycles', () => {
  it('finds folders that import each other by different files, by a type too', () => {
    const imports = readFixture('folders');
    expect(list(findFolderCycles(imports))).toEqual(['shared/apps shared/git']);
    expect(list(findFileCycles(imports))).toEqual([]);
  });

  it('finds a folder and its own subfolder', () => {
    expect(list(findFolderCycles(readFixture('parent')))).toEqual(['shared/platform shared/platform/local']);
  });

  it('finds files of one folder that import the types of each other', () => {
    const imports = readFixture('files');
    expect(list(findFolderCycles(imports))).toEqual([]);
    expect(list(findFileCycles(imports))).toEqual(['shared/one.ts shared/two.ts']);
  });

  it('leaves out tests, their support, contract suites, fakes, and what only looks like an import', () => {
    const imports = readFixture('tests');
    expect(imports).toEqual([{ from: 'shared/one/one.ts', line: 1, to: 'shared/two/two.ts' }]);
    expect(list(findFolderCycles(imports))).toEqual([]);
  });
});

it('the complaint about a cycle names each import of the circle by file and line', () => {
  expect(findFolderCycles(readFixture('folders')).map(describeCycle)).toEqual([
    [
      'These import each other in a circle: shared/apps, shared/git. The shortest circle is made by',
      '  shared/apps/apps.ts:1 imports shared/git/refs.ts',
      '  shared/git/repository.ts:1 imports shared/apps/app-names.ts',
    ].join('\n'),
  ]);
});
