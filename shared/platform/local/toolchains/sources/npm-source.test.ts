import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createNpmSource, type NpmPackage, npmPackages } from './npm-source.ts';
import type { ToolSource } from './tool-source.ts';

const published: Readonly<Record<string, readonly string[]>> = {
  yarn: ['1.22.22', '2.0.0-rc.1', '2.4.3'],
  '@yarnpkg/cli-dist': ['2.4.2', '4.9.2'],
};

/** By a program in npm's place that knows versions of packages, and writes down what it is called with. */
async function withNpm<Result>(
  use: (source: (name: string) => ToolSource, said: () => Promise<string[]>) => Promise<Result>,
): Promise<Result> {
  const directory = await mkdtemp(join(tmpdir(), 'paas-npm-source-'));
  try {
    await mkdir(join(directory, 'bin'));
    const script = `const said = process.argv.slice(2);
      require('fs').writeFileSync(${JSON.stringify(join(directory, 'said'))}, JSON.stringify(said));
      if (said[0] === 'view') console.log(JSON.stringify(${JSON.stringify(published)}[said[1]]));`;
    await writeFile(join(directory, 'bin/npm-cli.js'), script);
    const parts = { hostEnv: {}, node: process.execPath, npm: directory, findProgram: async () => undefined };
    const said = async (): Promise<string[]> => JSON.parse(await readFile(join(directory, 'said'), 'utf8')) as string[];
    return await use((name) => createNpmSource(parts, npmPackages[name] as NpmPackage), said);
  } finally {
    await rm(directory, { recursive: true });
  }
}

const argumentsFor = (name: string, version: string): Promise<readonly string[]> =>
  withNpm(async (sourceOf, said) => {
    await sourceOf(name).install(version, tmpdir());
    return said();
  });

it('tools come from npm without their scripts; pnpm with the program of this machine, an optional dependency since 12', async () => {
  expect(await argumentsFor('yarn', '1.2.3')).toEqual(
    expect.arrayContaining(['--ignore-scripts', '--omit=optional', 'yarn@1.2.3']),
  );
  expect(await argumentsFor('pnpm', '1.2.3')).toEqual(
    expect.arrayContaining(['--ignore-scripts', '--include=optional', 'pnpm@1.2.3']),
  );
});

it('Yarn 2 comes from the package that has the version', async () => {
  expect(await withNpm((sourceOf) => sourceOf('yarn-berry').listVersions('2'))).toEqual(['2.4.2', '4.9.2', '2.4.3']);
  expect((await argumentsFor('yarn-berry', '2.4.3')).at(-1)).toBe('yarn@2.4.3');
  expect((await argumentsFor('yarn-berry', '4.9.2')).at(-1)).toBe('@yarnpkg/cli-dist@4.9.2');
});
