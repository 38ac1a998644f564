import { describe, expect, it } from 'vitest';
import { explainFailure, type StepFailure } from './build-causes.ts';

const failure: StepFailure = {
  argv: ['npm', 'ci'],
  exitCode: 1,
  outOfMemory: false,
  diskFull: false,
  volume: undefined,
  tail: [],
  memoryBytes: 2048 * 1024 * 1024,
};

describe('the cause of a failed build', () => {
  it.each<[string, Partial<StepFailure>, string]>([
    ['an unknown failure', {}, '`npm ci` exited with code 1.'],
    [
      'a git host that cannot be reached',
      { tail: ["fatal: unable to access 'https://git.example.com/a/b/': Could not resolve host: git.example.com"] },
      'git.example.com could not be reached. Try again. If that does not help, the operator has to check the network of this platform.',
    ],
    [
      'an address that Deno cannot import',
      { tail: ["error: Import 'https://deno.example.com/x/mod.ts' failed."] },
      'deno.example.com could not be reached. Try again. If that does not help, the operator has to check the network of this platform.',
    ],
    [
      'a stale uv.lock',
      { tail: ['error: The lockfile at `uv.lock` needs to be updated, but `--locked` was provided.'] },
      'uv.lock does not match pyproject.toml. Run `uv lock` and commit uv.lock.',
    ],
    [
      'a stale poetry.lock',
      {
        tail: [
          'pyproject.toml changed significantly since poetry.lock was last generated. Run `poetry lock` to fix the lock file.',
        ],
      },
      'poetry.lock does not match pyproject.toml. Run `poetry lock` and commit poetry.lock.',
    ],
    [
      'a stale lockfile of Bun',
      { tail: ['error: lockfile had changes, but lockfile is frozen'] },
      'The lockfile of Bun does not match package.json. Run `bun install` and commit bun.lock.',
    ],
    [
      'a wrapped package manager',
      { argv: ['npm', 'exec', '--yes', '--package=pnpm@10', '--', 'pnpm', 'install'] },
      '`pnpm install` exited with code 1.',
    ],
    ['a program by its path', { argv: ['/opt/x/bin/python3', '-m', 'pip'] }, '`python3 -m pip` exited with code 1.'],
    [
      'a kill for memory',
      { outOfMemory: true, exitCode: 137 },
      'Out of memory: a build may use 2048 MiB, and `npm ci` wanted more.',
    ],
    [
      "V8's own limit",
      { tail: ['FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory'] },
      'Out of memory: a build may use 2048 MiB, and `npm ci` wanted more.',
    ],
    [
      'a full disk',
      { tail: ['npm error ENOSPC: no space left on device, write'] },
      "The platform's disk is full. Nothing is wrong with the app: its operator has to make room, then push again.",
    ],
    [
      'a lockfile that lags behind',
      { tail: ['npm error `npm ci` can only install packages when your package.json and package-lock.json are in sync.'] },
      'package-lock.json does not match package.json. Run `npm install` and commit package-lock.json.',
    ],
    ['a missing script', { tail: ['npm error Missing script: "build"'] }, 'package.json has no script "build".'],
    [
      'a package that is nowhere',
      { tail: ["npm error 404  'no-such@1.0.0' is not in this registry."] },
      'The package no-such@1.0.0 is not in the registry. Check its name and version in package.json.',
    ],
    [
      'a Python package that is nowhere',
      { tail: ['ERROR: No matching distribution found for flask==99'] },
      'There is no Python package flask==99. Check its name and version, and whether it supports this Python.',
    ],
    [
      'a newer Go',
      { tail: ['go: go.mod requires go >= 1.99 (running go 1.26.8; GOTOOLCHAIN=local)'] },
      'go.mod asks for Go 1.99, and this platform has 1.26.8.',
    ],
    [
      'a connection that the app itself failed to make',
      { tail: ['Error: connect ECONNREFUSED 127.0.0.1:5432'] },
      '`npm ci` exited with code 1.',
    ],
  ])('%s', (_, changes, cause) => {
    expect(explainFailure({ ...failure, ...changes })).toBe(cause);
  });
});
