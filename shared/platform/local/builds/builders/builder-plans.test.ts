import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Toolchains } from '../../toolchains/toolchains.ts';
import type { BuildPlan } from './builder.ts';
import { builders } from './builders.ts';
import { openSourceTree, type SourceTree } from './source-tree.ts';

const toolchain = { version: '1.2.3', path: ['/opt/tool/bin'], mounts: [] };
const toolchains: Toolchains = {
  findNode: async () => toolchain,
  findPython: async () => ({ ...toolchain, executable: '/opt/tool/bin/python3', pip: true }),
  findGo: async () => toolchain,
  findRust: async () => toolchain,
};

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-plans-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function openSource(files: Readonly<Record<string, string>>): Promise<SourceTree> {
  const root = await mkdtemp(join(directory, 'source-'));
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
  }
  return openSourceTree(root);
}

/** By the first builder that detects the source, as a build does it. */
async function planFor(files: Readonly<Record<string, string>>): Promise<BuildPlan & { builder: string }> {
  const source = await openSource(files);
  for (const builder of builders) {
    if ((await builder.detect(source)) === undefined) continue;
    return { ...(await builder.plan(source, { toolchains, env: {}, cache: 'cold' })), builder: builder.name };
  }
  throw new Error('no builder detects this');
}

/** Each step in one line, with the condition under which it runs. */
const stepsOf = ({ steps }: BuildPlan): string[] =>
  steps.map(({ when, argv }) => [...(when === undefined ? [] : [`${when}:`]), ...argv].join(' '));

describe('the plan of a Node.js app', () => {
  const manifest = JSON.stringify({ dependencies: { 'is-number': '7.0.0' } });

  it('with pnpm-lock.yaml installs exactly that by the pnpm which wrote it', async () => {
    const plan = await planFor({ 'package.json': manifest, 'pnpm-lock.yaml': "lockfileVersion: '9.0'\n" });
    const install = 'npm exec --yes --package=pnpm@10 -- pnpm install --frozen-lockfile --prefer-offline --prod=false';
    expect(plan.builder).toBe('node');
    expect(stepsOf(plan)).toEqual([`if-restored: ${install}`, `unless-restored: ${install}`]);
    expect(plan.cacheDirectories).toEqual(['npm', 'pnpm']);
    expect(plan.env).toMatchObject({ npm_config_store_dir: '/cache/pnpm', CI: 'true' });
    expect(plan.tree).toMatchObject({ path: 'node_modules' });
  });

  it('with yarn.lock of version 1 installs exactly that by Yarn 1', async () => {
    const plan = await planFor({ 'package.json': manifest, 'yarn.lock': '# yarn lockfile v1\n' });
    const install =
      'npm exec --yes --package=yarn@1.22.22 -- yarn install --frozen-lockfile --production=false --non-interactive';
    expect(stepsOf(plan)).toEqual([`if-restored: ${install}`, `unless-restored: ${install}`]);
    expect(plan.cacheDirectories).toEqual(['npm', 'yarn']);
    expect(plan.env).toMatchObject({ YARN_CACHE_FOLDER: '/cache/yarn' });
  });
});

describe('the plan of a Python app', () => {
  it('with pyproject.toml installs the project into an environment, and caches downloads alone', async () => {
    const plan = await planFor({ 'pyproject.toml': '[project]\nname = "hello"\n' });
    const python = '/opt/tool/bin/python3';
    const install = `${python} -m pip --python /app/.venv/bin/python3 install --disable-pip-version-check .`;
    expect(plan.builder).toBe('python');
    expect(stepsOf(plan)).toEqual([
      `unless-restored: ${python} -m venv --without-pip /app/.venv`,
      `if-restored: ${install}`,
      `unless-restored: ${install}`,
    ]);
    expect(plan.tree).toBeUndefined();
    expect(plan.path).toEqual(['/app/.venv/bin', '/opt/tool/bin']);
  });
});

describe('the plan of a Rust app', () => {
  const manifest = '[package]\nname = "greeter"\nversion = "0.1.0"\n';

  it('installs its programs into bin, with what cargo compiled in the cache', async () => {
    const plan = await planFor({ 'Cargo.toml': manifest });
    expect(plan.builder).toBe('rust');
    expect(stepsOf(plan)).toEqual(['cargo install --path . --root /app --no-track --force']);
    expect(plan.env).toMatchObject({ CARGO_HOME: '/cache/cargo', CARGO_TARGET_DIR: '/cache/cargo-target' });
    expect(plan.cacheDirectories).toEqual(['cargo', 'cargo-target']);
    expect(plan.notes).toContainEqual(expect.stringContaining('No Cargo.lock'));
  });

  it('keeps to Cargo.lock where there is one', async () => {
    const plan = await planFor({ 'Cargo.toml': manifest, 'Cargo.lock': '' });
    expect(stepsOf(plan)).toEqual(['cargo install --path . --root /app --no-track --force --locked']);
    expect(plan.notes).toEqual(['Using Rust 1.2.3']);
  });

  it('runs the one program, else the one that is called like the package', async () => {
    const plan = await planFor({ 'Cargo.toml': manifest });
    expect(await plan.defaultProcesses(await openSource({ 'bin/other': '' }))).toEqual({ web: 'bin/other' });
    expect(await plan.defaultProcesses(await openSource({ 'bin/other': '', 'bin/greeter': '' }))).toEqual({ web: 'bin/greeter' });
    expect(await plan.defaultProcesses(await openSource({ 'bin/one': '', 'bin/two': '' }))).toEqual({});
  });
});

describe('the plan of a Go app', () => {
  const module = 'module example.com/hello\n\ngo 1.19\n';
  const program = '\x7fELF';

  it('builds every package into bin, with what the compiler made in the cache', async () => {
    const plan = await planFor({ 'go.mod': module });
    expect(plan.builder).toBe('go');
    expect(stepsOf(plan)).toEqual(['go build -o bin/ ./...']);
    expect(plan.env).toMatchObject({ GOMODCACHE: '/cache/go-modules', GOCACHE: '/cache/go-build' });
    expect(plan.cacheDirectories).toEqual(['go-modules', 'go-build']);
  });

  it('runs the one program that was built, else the one that is called like the module', async () => {
    const plan = await planFor({ 'go.mod': module, 'bin/before': program });
    const built = { 'bin/before': program, 'bin/script': '#!/bin/sh' };
    expect(await plan.defaultProcesses(await openSource({ ...built, 'bin/other': program }))).toEqual({ web: 'bin/other' });
    expect(await plan.defaultProcesses(await openSource({ ...built, 'bin/other': program, 'bin/hello': program }))).toEqual({
      web: 'bin/hello',
    });
    expect(await plan.defaultProcesses(await openSource(built))).toEqual({});
  });
});
