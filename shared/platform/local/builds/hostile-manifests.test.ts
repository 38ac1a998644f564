import { beforeAll, describe, expect, it } from 'vitest';
import { parseProcfile } from '#shared/platform/procfile.ts';
import type { ToolStore } from '../toolchains/tool-store.ts';
import { openToolchains } from '../toolchains/toolchains.ts';
import { explainFailure } from './build-causes.ts';
import { dotnetBuilder } from './builders/dotnet.ts';
import { elixirBuilder } from './builders/elixir.ts';
import { goBuilder } from './builders/go.ts';
import { nodeBuilder } from './builders/node/node.ts';
import { phpBuilder } from './builders/php.ts';
import { pythonBuilder } from './builders/python/python.ts';
import { findPythonProcesses } from './builders/python/python-processes.ts';
import { readPythonProject } from './builders/python/python-project.ts';
import { rubyBuilder } from './builders/ruby.ts';
import { rustBuilder } from './builders/rust.ts';
import type { BuildContext } from './plans/builder.ts';
import type { SourceTree } from './plans/source-tree.ts';
import { readVersionPins } from './plans/version-pins.ts';

function treeOf(files: Readonly<Record<string, string>>): SourceTree {
  const encoder = new TextEncoder();
  return {
    hasFile: async (path) => path in files,
    readText: async (path) => files[path],
    readBytes: async (path) => (files[path] === undefined ? undefined : encoder.encode(files[path])),
    list: async () => Object.keys(files),
  };
}

/** Nothing is installed here. */
const store: ToolStore = { listVersions: async () => ['1.0.0'], ensureTool: async ({ version }) => version };
const toolchains = openToolchains({ env: { PATH: '/usr/bin:/bin' }, platformNodeVersion: '26.0.0', store });
const context: BuildContext = { toolchains, env: {}, cache: 'cold', pins: new Map(), ownCommands: [], buildsItself: false };
/** Characters; files up to 1 MiB are read. A pattern that compares each character with all others takes ten seconds for these. */
const length = 120_000;
const manifest = (changes: object): string => JSON.stringify({ name: 'a', version: '1.0.0', ...changes });
/** A plan may refuse the text; it may not take long. */
const planned = (plan: Promise<unknown>): Promise<unknown> => plan.catch(() => undefined);

/** All other tenants wait while a text is matched: it runs on the thread that serves everybody. */
describe('texts of tenants that patterns could take long for', () => {
  // Asked once, by programs that take their time.
  beforeAll(async () => {
    await Promise.all(
      [context.toolchains.findPython(), context.toolchains.findNode(undefined)].map((found) => found.catch(() => undefined)),
    );
  });

  it.each<[string, () => unknown]>([
    [
      'empty lines of requirements.txt',
      () => planned(pythonBuilder.plan(treeOf({ 'requirements.txt': `${'\n'.repeat(length)}x` }), context)),
    ],
    [
      'a dot and spaces in requirements.txt',
      () => planned(pythonBuilder.plan(treeOf({ 'requirements.txt': `.${' '.repeat(length)}x` }), context)),
    ],
    ['spaces in a Procfile', () => planned(Promise.resolve().then(() => parseProcfile(`a:${' '.repeat(length)}x\u2028y`)))],
    [
      'digits of "packageManager"',
      () => {
        const packageManager = `pnpm@1.1.${'1'.repeat(length)}!`;
        return planned(nodeBuilder.plan(treeOf({ 'package.json': manifest({ packageManager }), 'pnpm-lock.yaml': '' }), context));
      },
    ],
    [
      'a long range in "engines"',
      () =>
        planned(
          nodeBuilder.plan(treeOf({ 'package.json': manifest({ engines: { node: '>=1 '.repeat(length * 4) } }) }), context),
        ),
    ],
    [
      'spaces in go.mod',
      () => planned(goBuilder.plan(treeOf({ 'go.mod': `module${' '.repeat(length)}/${'/'.repeat(length)}` }), context)),
    ],
    ['unclosed blocks of go.work', () => planned(goBuilder.plan(treeOf({ 'go.work': 'use (\n'.repeat(length) }), context))],
    [
      'empty lines of rust-toolchain',
      () =>
        planned(rustBuilder.plan(treeOf({ 'Cargo.toml': '[package]', 'rust-toolchain': `${'\n'.repeat(length)}x` }), context)),
    ],
    [
      'stars in "workspaces"',
      () => {
        const files = { 'package.json': manifest({ workspaces: [`${'*a'.repeat(2000)}b`] }), ['a'.repeat(length)]: '' };
        return planned(nodeBuilder.plan(treeOf(files), context));
      },
    ],
    [
      'empty lines of settings.py and main.py',
      async () => {
        const files = { 'manage.py': '', '/settings.py': '\n'.repeat(length), 'main.py': '\n'.repeat(length) };
        await planned(pythonBuilder.plan({ ...treeOf(files), list: async () => [''] }, context));
        return findPythonProcesses(
          treeOf({ 'main.py': `${'\n'.repeat(length)}${'x'.repeat(length)} = ` }),
          await readPythonProject(treeOf({})),
        );
      },
    ],
    [
      'spaces in pins of versions',
      () => {
        const files = {
          '.tool-versions': `node${' '.repeat(length)}x\n`,
          'runtime.txt': `python-${' '.repeat(length)}`,
          '.nvmrc': '\n'.repeat(length),
        };
        return readVersionPins(treeOf(files), {}, { versions: {}, packages: {} });
      },
    ],
    [
      'spaces in Cargo.toml',
      () => planned(rustBuilder.plan(treeOf({ 'Cargo.toml': `name${' '.repeat(length)}=${' '.repeat(length)}` }), context)),
    ],
    [
      'spaces in Gemfile and Gemfile.lock',
      () => {
        const spaces = ' '.repeat(length);
        const Gemfile = `${'gem ('.repeat(length)}\nruby${spaces}x\ngem${spaces}\n${spaces}ruby`;
        return planned(
          rubyBuilder.plan(treeOf({ Gemfile, 'Gemfile.lock': `RUBY VERSION\n${spaces}ruby ${'1'.repeat(length)}` }), context),
        );
      },
    ],
    [
      'a long constraint of PHP',
      () =>
        planned(
          phpBuilder.plan(treeOf({ 'composer.json': manifest({ require: { php: `~8${' '.repeat(length)}|` } }) }), context),
        ),
    ],
    [
      'unclosed tuples of mix.exs',
      () => planned(elixirBuilder.plan(treeOf({ 'mix.exs': `${'{:a'.repeat(length)}${'\n'.repeat(length)}elixir:` }), context)),
    ],
    [
      'tags of a .NET project',
      () => planned(dotnetBuilder.plan(treeOf({ 'a.csproj': '<TargetFramework>net'.repeat(length) }), context)),
    ],
    [
      'what tools print at last',
      () => {
        const tail = ['npm error 404', ...Array.from({ length: 200 }, () => `${'\t'.repeat(8000)}x`)];
        return explainFailure({
          argv: ['npm'],
          exitCode: 1,
          outOfMemory: false,
          diskFull: false,
          volume: undefined,
          tail,
          memoryBytes: 1,
        });
      },
    ],
  ])('%s', async (_, read) => {
    const begun = performance.now();
    await read();
    expect(performance.now() - begun).toBeLessThan(3000);
  });
});
