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
      'a stale Gemfile.lock',
      { tail: ['You have added to the Gemfile:', '* rack'] },
      'Gemfile.lock does not match Gemfile. Run `bundle install` and commit Gemfile.lock.',
    ],
    [
      'a Gemfile.lock for other platforms',
      {
        tail: [
          'Your bundle only supports platforms ["arm64-darwin-22"] but your local platform is',
          'x86_64-linux. Add the current',
        ],
      },
      'Gemfile.lock is for other platforms. Run `bundle lock --add-platform x86_64-linux` and commit Gemfile.lock.',
    ],
    [
      'a gem that does not exist',
      { tail: ["Could not find gem 'nonsense (= 1.0)' in rubygems repository"] },
      'There is no gem nonsense (= 1.0). Check its name and version in Gemfile.',
    ],
    [
      'an extension that PHP lacks',
      {
        tail: [
          '    - Root composer.json requires PHP extension ext-foo * but it is missing from your system. Install or enable it.',
        ],
      },
      'composer.json asks for the extension foo, which the PHP of this platform does not have.',
    ],
    [
      'an address that Mix cannot reach',
      {
        tail: [
          "** (Mix) httpc request failed with: {:failed_connect, [{:to_address, {'hex.example.com', 443}}, {:inet, [:inet], :nxdomain}]}",
        ],
      },
      'hex.example.com could not be reached. Try again. If that does not help, the operator has to check the network of this platform.',
    ],
    [
      'an index of gems that cannot be reached',
      { tail: ['Could not reach host gems.example.com. Check your network connection and try again.'] },
      'gems.example.com could not be reached. Try again. If that does not help, the operator has to check the network of this platform.',
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
    ...(
      [
        ['Gradle', 'Exception in thread "main" java.net.UnknownHostException: services.gradle.org', 'services.gradle.org'],
        ['uv', 'cause: error sending request for url (https://files.example.org/a.whl)', 'files.example.org'],
        ['Yarn', 'RequestError: getaddrinfo ENOTFOUND registry.example.com', 'registry.example.com'],
        ['pip', "HTTPSConnectionPool(host='pypi.example.org', port=443): Max retries exceeded", 'pypi.example.org'],
      ] as const
    ).map(([tool, line, host]): [string, Partial<StepFailure>, string] => [
      `a host that ${tool} cannot reach`,
      { tail: [line] },
      `${host} could not be reached. Try again. If that does not help, the operator has to check the network of this platform.`,
    ]),
    [
      'a package whose registry Bun cannot reach',
      { tail: ['error: DNSResolveFailed downloading tarball @jsr/std__fmt@0.224.0'] },
      'The registry that has the package @jsr/std__fmt could not be reached. Try again. If that does not help, the operator has to check the network of this platform.',
    ],
    [
      'a native addon whose library is missing, and whose binary could not be downloaded',
      {
        tail: [
          'npm error path /app/node_modules/canvas',
          'npm error prebuild-install warn install getaddrinfo ENOTFOUND github.com',
          "npm error Package 'pixman-1', required by 'virtual:world', not found",
        ],
      },
      'The library pixman-1 is missing, and a package of the app is compiled with it. Commit an Aptfile with the line: libpixman-1-dev',
    ],
    [
      'a library that Meson does not find',
      { tail: ['../cairo/meson.build:31:12: ERROR: Dependency "cairo" not found (tried pkg-config and cmake)'] },
      'The library cairo is missing, and a package of the app is compiled with it. Commit an Aptfile with the line: libcairo2-dev',
    ],
    [
      'a header that is missing',
      { tail: ['src/x.c:3:10: fatal error: ldap.h: No such file or directory'] },
      'The header ldap.h is missing, and a package of the app is compiled with it. Commit an Aptfile with the line: libldap-dev',
    ],
    [
      'peer dependencies that do not fit',
      {
        tail: [
          'npm error code ERESOLVE',
          'npm error ERESOLVE unable to resolve dependency tree',
          'npm error',
          'npm error While resolving: shop@1.0.0',
          'npm error Found: react@19.0.0',
        ],
      },
      'Packages need versions of one another that do not fit, first seen at shop@1.0.0. Run `npm install` until it succeeds, or write legacy-peer-deps=true into .npmrc.',
    ],
    [
      'an engine that yarn refuses',
      { tail: ['error got@14.0.0: The engine "node" is incompatible with this module. Expected version ">=20". Got "18.20.5"'] },
      'A package needs node >=20, and the app is built with 18.20.5. Ask for another version in "engines" of package.json.',
    ],
    [
      'webpack 4 on a newer Node.js',
      { tail: ["  code: 'ERR_OSSL_EVP_UNSUPPORTED'"] },
      'This version of webpack does not work with Node.js 17 and later. Update webpack, or set the variable NODE_OPTIONS=--openssl-legacy-provider.',
    ],
    [
      'a client of Prisma that was not generated',
      { tail: [`src/index.ts(1,24): error TS2305: Module '"@prisma/client"' has no exported member 'User'.`] },
      'The client of Prisma was not generated, perhaps since its programs could not be downloaded from binaries.prisma.sh. To see why, run `prisma generate` at the start of the script "build".',
    ],
    [
      'a library that few packages need',
      { tail: ['Package foo-9 was not found in the pkg-config search path.', "No package 'foo-9' found"] },
      'The library foo-9 is missing, and a package of the app is compiled with it. Commit an Aptfile with the -dev package of Debian that has foo-9.pc, which https://packages.debian.org finds.',
    ],
    [
      'an error of TypeScript',
      { tail: ['src/app.ts(12,5): error TS2322: Type string is not assignable to type number.'] },
      'TypeScript refuses src/app.ts, line 12: Type string is not assignable to type number. (TS2322)',
    ],
    [
      'a file that a bundler does not find',
      { tail: ["Module not found: Can't resolve './Button'"] },
      './Button could not be found. Add it to the dependencies in package.json, or check the path and its upper and lower case.',
    ],
    [
      'a program that is not installed',
      { tail: ['sh: 1: tsc: not found'] },
      'The program tsc could not be found. Add the package that has it to the dependencies of the app.',
    ],
    [
      'a program of a step that is not installed',
      { tail: ['/run/paas/launch: 21: exec: mvn: not found'] },
      'The program mvn could not be found. Add the package that has it to the dependencies of the app.',
    ],
    [
      'Python packages that contradict one another, for uv',
      {
        tail: [
          '  × No solution found when resolving dependencies:',
          '  ╰─▶ Because a==1 depends on b>2 and you require b<2, we can conclude that',
        ],
      },
      'No versions of the dependencies fit together. Because a==1 depends on b>2 and you require b<2, we can conclude that',
    ],
    [
      'Python packages that contradict one another, for pip',
      { tail: ['ERROR: ResolutionImpossible: for help visit https://pip.pypa.io'] },
      'requirements.txt asks for versions that contradict one another. The lines above name the packages.',
    ],
    [
      'a package for an older Python',
      { tail: ["ModuleNotFoundError: No module named 'distutils'"] },
      'A package needs distutils, which Python has no longer had since 3.12. Update the package, or ask for Python 3.11 in .python-version.',
    ],
    [
      'a module that go.mod lacks',
      { tail: ['main.go:4:2: no required module provides package github.com/gin-gonic/gin; to add it:'] },
      'go.mod does not have the module of github.com/gin-gonic/gin. Run `go mod tidy` and commit go.mod and go.sum.',
    ],
    [
      'a newer Java',
      { tail: ['[ERROR] Fatal error compiling: error: release version 25 not supported -> [Help 1]'] },
      'The app is compiled for Java 25, and this JDK is older. Ask for Java 25 in system.properties: java.runtime.version=25',
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
