import { describe, expect, it } from 'vitest';
import { openPlanFixture, stepsOf } from '#test/support/builds/plan-fixture.ts';

const { planFor, openSource } = openPlanFixture();

const json = (content: object): string => JSON.stringify(content);
const serve = '/opt/paas/node/bin/node /opt/paas/static-server/main.ts';

describe('a workspace without scripts of its own', () => {
  const root = (more: object = {}): string => json({ workspaces: ['apps/*', 'packages/*'], ...more });
  const app = json({ name: 'web', scripts: { build: 'x', start: 'node server.js' } });
  const library = json({ name: 'lib', main: 'index.js', scripts: { build: 'tsc' } });
  const files = { 'package.json': root(), 'package-lock.json': '{}', 'packages/lib/package.json': library };

  it.each<[string, Record<string, string>, string]>([
    ['npm', { 'package-lock.json': '{}' }, 'npm run build --workspaces --if-present'],
    ['pnpm', { 'pnpm-lock.yaml': "lockfileVersion: '9.0'\n" }, 'pnpm --recursive --if-present run build'],
    ['yarn 1', { 'yarn.lock': '# yarn lockfile v1\n' }, 'yarn --silent workspaces run build'],
    ['yarn 4', { 'yarn.lock': '__metadata:\n  version: 8\n' }, 'yarn workspaces foreach --all --topological-dev run build'],
    ['bun', { 'bun.lock': '{}' }, 'bun run --filter * build'],
    ['Turborepo', { 'package.json': root({ devDependencies: { turbo: '2' } }) }, 'turbo run build'],
    ['Nx', { 'package.json': root({ devDependencies: { nx: '21' } }) }, 'nx run-many --target=build'],
  ])('builds its packages by %s', async (_, more, step) => {
    const plan = await planFor({
      'package.json': root(),
      'apps/web/package.json': app,
      'packages/lib/package.json': library,
      ...more,
    });
    expect(stepsOf(plan)).toContain(step);
  });

  it('builds nothing where no package has a "build" script', async () => {
    const plan = await planFor({ 'package.json': root(), 'apps/web/package.json': json({ scripts: { start: 'node .' } }) });
    expect(stepsOf(plan).filter((step) => step.includes('build'))).toEqual([]);
  });

  it.each<[string, Record<string, string>, Record<string, string>, string | undefined]>([
    [
      'the package with a "start" script',
      { 'apps/shop/package.json': app },
      {},
      'cd apps/shop && PATH=/app/apps/shop/node_modules/.bin:$PATH npm start',
    ],
    [
      'of several the one that is called like an app',
      { 'apps/docs/package.json': app, 'apps/web/package.json': app, 'apps/api/package.json': app },
      {},
      'cd apps/web && PATH=/app/apps/web/node_modules/.bin:$PATH npm start',
    ],
    [
      'the server that a framework built',
      { 'apps/shop/package.json': json({ dependencies: { next: '15' } }) },
      { 'apps/shop/.next/BUILD_ID': '' },
      'cd apps/shop && PATH=/app/apps/shop/node_modules/.bin:$PATH next start',
    ],
    [
      'the site that a package built',
      { 'apps/shop/package.json': json({ devDependencies: { vite: '6' }, scripts: { start: 'vite' } }) },
      { 'apps/shop/dist/index.html': '' },
      `${serve} '/app/apps/shop/dist' --fallback`,
    ],
    ['no library', {}, { 'packages/lib/index.js': '' }, undefined],
    ['none of several', { 'apps/one/package.json': app, 'apps/two/package.json': app }, {}, undefined],
  ])('starts %s', async (_, packages, built, web) => {
    const plan = await planFor({ ...files, ...packages });
    expect((await plan.defaultProcesses(await openSource({ ...files, ...packages, ...built })))['web']).toBe(web);
  });

  it('says which packages it could start', async () => {
    const several = await planFor({ ...files, 'apps/one/package.json': app, 'apps/two/package.json': app });
    expect(several.processHint).toContain('(apps/one, apps/two)');
    expect(several.processHint).toContain('web: cd apps/one && npm start');
    expect((await planFor(files)).processHint).toMatch(/^No package of this workspace has a "start" script\./);
  });
});

describe('the image of an app that is static files', () => {
  const files = {
    'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { vite: '6' } }),
    'package-lock.json': '{}',
  };

  it('has no dependencies, which are not pruned first', async () => {
    const plan = await planFor(files);
    const built = await openSource({ ...files, 'dist/index.html': '' });
    const processes = await plan.defaultProcesses(built);
    expect(plan.unusedBy?.(processes)).toContain('node_modules');
    expect(await plan.steps.at(-1)?.skipIf?.(built)).toContain('static files');
  });

  it('has its dependencies if it runs code of the app', async () => {
    const plan = await planFor(files);
    expect(plan.unusedBy?.({ web: 'node server.js' })).toEqual([]);
    expect(plan.unusedBy?.({ web: `${serve} '/app/dist'`, worker: 'node worker.js' })).toEqual([]);
    const withProcfile = { ...files, 'dist/index.html': '', Procfile: 'web: node server.js' };
    const { steps } = await planFor(withProcfile);
    expect(await steps.at(-1)?.skipIf?.(await openSource(withProcfile))).toBeUndefined();
  });
});

describe('a server that brings what it needs', () => {
  it('of Nuxt is the image without node_modules, also where "start" runs it', async () => {
    const start = 'node .output/server/index.mjs';
    const plan = await planFor({
      'package.json': json({ scripts: { build: 'nuxt build', start }, dependencies: { nuxt: '4' } }),
    });
    expect(await plan.defaultProcesses(await openSource({}))).toEqual({ web: start });
    expect(plan.unusedBy?.({ web: start })).toContain('node_modules');
    expect(plan.unusedBy?.({ web: 'npm start' })).toEqual([]);
  });

  it('of Next.js gets its assets', async () => {
    const files = { 'package.json': json({ scripts: { build: 'next build' }, dependencies: { next: '15' } }) };
    expect(stepsOf(await planFor(files)).join()).not.toContain('standalone');
    const plan = await planFor({ ...files, 'next.config.mjs': "export default { output: 'standalone' }" });
    const step = plan.steps.find(({ title }) => title.includes('standalone'));
    expect(await step?.skipIf?.(await openSource({ '.next/standalone/server.js': '' }))).toBeUndefined();
    expect(await step?.skipIf?.(await openSource({}))).toContain('no .next/standalone');
    expect(await plan.defaultProcesses(await openSource({ '.next/standalone/server.js': '', '.next/BUILD_ID': '' }))).toEqual({
      web: 'node .next/standalone/server.js',
    });
  });
});
