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
