import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createNpmSource, type NpmPackage, npmPackages } from './npm-source.ts';

/** What npm is called with, by a program in its place that writes it down. */
async function argumentsFor(name: string): Promise<readonly string[]> {
  const directory = await mkdtemp(join(tmpdir(), 'paas-npm-source-'));
  try {
    await mkdir(join(directory, 'bin'));
    const script = `require('fs').writeFileSync(${JSON.stringify(join(directory, 'said'))}, JSON.stringify(process.argv.slice(2)))`;
    await writeFile(join(directory, 'bin/npm-cli.js'), script);
    const parts = { hostEnv: {}, node: process.execPath, npm: directory, findProgram: async () => undefined };
    await createNpmSource(parts, npmPackages[name] as NpmPackage).install('1.2.3', directory);
    return JSON.parse(await readFile(join(directory, 'said'), 'utf8')) as string[];
  } finally {
    await rm(directory, { recursive: true });
  }
}

it('tools come from npm without their scripts; pnpm with the program of this machine, an optional dependency since 12', async () => {
  expect(await argumentsFor('yarn')).toEqual(expect.arrayContaining(['--ignore-scripts', '--omit=optional', 'yarn@1.2.3']));
  expect(await argumentsFor('pnpm')).toEqual(expect.arrayContaining(['--ignore-scripts', '--include=optional', 'pnpm@1.2.3']));
});
