import { execFile } from 'node:child_process';
import { mkdtemp, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { openPlanFixture, plainContext, stepsOf, toolchains } from '#test/support/builds/plan-fixture.ts';
import { chooseBuilders } from '../choose-builders.ts';
import { nodeBuilder } from './node.ts';
import { findNodeProcesses } from './node-processes.ts';
import { parsePackageJson, readPackageJson } from './package-json.ts';
import { findPackageManager } from './package-manager.ts';

const { openSource, planFor } = openPlanFixture();

describe('the plan of a Node.js app', () => {
  const manifestWith = (more: object): string => JSON.stringify({ dependencies: { 'is-number': '7.0.0' }, ...more });
  const manifest = manifestWith({});
  const serve = '/opt/paas/node/bin/node /opt/paas/static-server/main.ts';

  it('with pnpm-lock.yaml installs exactly that by the pnpm which wrote it', async () => {
    const plan = await planFor({ 'package.json': manifest, 'pnpm-lock.yaml': "lockfileVersion: '9.0'\n" });
    const install = 'pnpm install --frozen-lockfile --prefer-offline --prod=false';
    expect(plan.builder).toBe('node');
    expect(stepsOf(plan)).toEqual([`if-restored: ${install}`, `unless-restored: ${install}`]);
    expect(plan.notes).toContainEqual('Using pnpm 9 (pnpm-lock.yaml asks for 9)');
    expect(plan.cacheDirectories).toEqual(['npm', 'pnpm']);
    // pnpm reads the first name until 10, the second one from 11 on.
    expect(plan.env).toMatchObject({ npm_config_store_dir: '/cache/pnpm', pnpm_config_store_dir: '/cache/pnpm', CI: 'true' });
    expect(plan.runtimeEnv).toMatchObject({ pnpm_config_verify_deps_before_run: 'false', pnpm_config_pm_on_fail: 'ignore' });
    expect(plan.tree).toMatchObject({ paths: ['node_modules'] });
  });

  it('with pnpm has the headers of Node.js where node-gyp looks for them', async () => {
    const source = await openSource({ 'package.json': manifest, 'pnpm-lock.yaml': "lockfileVersion: '9.0'\n" });
    const node = { version: '26.1.0', path: [], mounts: [], headers: '/opt/node' };
    const context = { ...plainContext, toolchains: { ...toolchains, findNode: async () => node } };
    const step = (await nodeBuilder.plan(source, context)).steps.find(({ title }) => title.includes('Headers'));
    const home = await mkdtemp(join(tmpdir(), 'paas-headers-'));
    try {
      await promisify(execFile)(step?.argv[0] ?? '', step?.argv.slice(1) ?? [], { env: { HOME: home, PATH: '/usr/bin:/bin' } });
      expect(await readlink(`${home}/.cache/node-gyp/26.1.0/include`)).toBe('/opt/node/include');
      expect(await readFile(`${home}/.cache/node-gyp/26.1.0/installVersion`, 'utf8')).toBe('11\n');
    } finally {
      await rm(home, { recursive: true });
    }
  });

  it.each([
    ['26.1.0', 'npm_package_config_node_gyp_nodedir'],
    ['22.19.0', 'npm_config_nodedir'],
  ])('with Node.js %s tells node-gyp where the headers are by %s', async (version, variable) => {
    const source = await openSource({ 'package.json': manifest, 'package-lock.json': '{}' });
    const node = { version, path: [], mounts: [], headers: '/opt/node' };
    const context = { ...plainContext, toolchains: { ...toolchains, findNode: async () => node } };
    const { env } = await nodeBuilder.plan(source, context);
    expect(Object.entries(env ?? {}).filter(([name]) => name.endsWith('nodedir'))).toEqual([[variable, '/opt/node']]);
  });

  it('runs Puppeteer with the Chromium of Debian, and keeps the browsers of Playwright in the image', async () => {
    const app = (dependency: string, group = 'dependencies') =>
      planFor({ 'package.json': JSON.stringify({ scripts: { start: 'node a.js' }, [group]: { [dependency]: '1' } }) });
    const puppeteer = await app('puppeteer');
    expect(puppeteer.systemPackages).toContain('chromium');
    for (const env of [puppeteer.env, puppeteer.runtimeEnv])
      expect(env).toMatchObject({ PUPPETEER_SKIP_DOWNLOAD: 'true', PUPPETEER_EXECUTABLE_PATH: '/usr/bin/chromium' });
    const playwright = await app('playwright');
    expect(playwright.systemPackages).toContain('libnss3');
    for (const env of [playwright.env, playwright.runtimeEnv])
      expect(env).toMatchObject({ PLAYWRIGHT_BROWSERS_PATH: '/app/.playwright' });
    expect((await app('puppeteer', 'devDependencies')).systemPackages).toEqual([]);
  });

  it.each([
    ['1', 'playwright', true],
    ['0', 'playwright', false],
    ['1', 'express', false],
  ])('with RAILPACK_NODE_PLAYWRIGHT_INSTALL=%s and %s installs a browser: %s', async (value, dependency, installs) => {
    const manifest = { scripts: { start: 'node a.js' }, dependencies: { [dependency]: '1' } };
    const plan = await planFor({ 'package.json': JSON.stringify(manifest) }, { RAILPACK_NODE_PLAYWRIGHT_INSTALL: value });
    expect(stepsOf(plan).includes('node_modules/.bin/playwright install chromium')).toBe(installs);
  });

  it.each([
    { Procfile: 'web: tsx server.ts\n' },
    { 'paas.yml': 'start: tsx server.ts\n' },
    { 'railpack.json': '{"deploy": {"startCommand": "tsx server.ts"}}' },
  ])('keeps development dependencies that the own command of an app uses: %j', async (files) => {
    const source = { 'package.json': '{"devDependencies": {"tsx": "4"}}', 'package-lock.json': '{}', ...files };
    const plan = await planFor(source as Record<string, string>);
    const prune = plan.steps.find(({ title }) => title.startsWith('npm prune'));
    expect(await prune?.skipIf?.(await openSource(source as Record<string, string>))).toContain('`tsx` is used to start the app');
  });

  it.each([{ Procfile: 'web: node a.js\n' }, { 'paas.yml': 'start: node a.js\n' }])(
    'needs no "start" script beside %j',
    async (files) => {
      await expect(planFor({ 'package.json': '{}', ...files } as Record<string, string>)).resolves.toBeDefined();
    },
  );

  it('is not taken for an app of Deno by a file that both have', async () => {
    const source = await openSource({ 'package.json': '{"scripts": {"build": "tsc"}}', 'index.ts': '' });
    const { main, before } = await chooseBuilders(source);
    expect([main.builder.name, ...before]).toEqual(['node']);
  });

  it("keeps the packages of Yarn's Plug'n'Play, unless they are in the repository", async () => {
    const files = { 'package.json': manifest, 'yarn.lock': '__metadata:\n  version: 8\n' };
    const plan = await planFor(files);
    expect(plan.tree?.paths).toEqual(['.yarn/cache', '.yarn/unplugged']);
    expect(stepsOf(plan).slice(0, 2)).toEqual([
      'if-restored: yarn install --immutable',
      'unless-restored: yarn install --immutable',
    ]);
    expect((await planFor({ ...files, '.yarn/cache/six.zip': '' })).tree).toBeUndefined();
  });

  it('keeps what bundlers cache for their next build', async () => {
    const cra = { 'package.json': '{"scripts":{"build":"x"},"dependencies":{"react-scripts":"5"}}' };
    expect((await planFor(cra)).keptDirectories).toEqual(['node_modules/.cache']);
  });

  it('with yarn.lock of version 1 installs exactly that by Yarn 1', async () => {
    const plan = await planFor({ 'package.json': manifest, 'yarn.lock': '# yarn lockfile v1\n' });
    const install = 'yarn install --production=false --non-interactive --frozen-lockfile';
    expect(stepsOf(plan)).toEqual([`if-restored: ${install}`, `unless-restored: ${install}`]);
    expect(plan.path).toContain('/opt/tools/yarn');
    expect(plan.cacheDirectories).toEqual(['npm', 'yarn']);
    expect(plan.env).toMatchObject({ YARN_CACHE_FOLDER: '/cache/yarn' });
  });

  it.each([
    [{ 'package-lock.json': '{}' }, {}, 'npm', undefined],
    [{ 'pnpm-lock.yaml': "lockfileVersion: '6.0'\n" }, {}, 'pnpm', '8'],
    [
      { 'pnpm-lock.yaml': "lockfileVersion: '9.0'\n", 'pnpm-workspace.yaml': 'onlyBuiltDependencies: [esbuild]\n' },
      {},
      'pnpm',
      '10',
    ],
    [{ 'pnpm-lock.yaml': "lockfileVersion: '9.0'\n" }, { packageManager: 'pnpm@9.1.0+sha512.0a' }, 'pnpm', '9.1.0'],
    [{ 'pnpm-lock.yaml': '' }, { engines: { pnpm: '^8.15' } }, 'pnpm', '^8.15'],
    [{ 'package-lock.json': '{}', 'yarn.lock': '' }, { packageManager: 'npm@10.2.0' }, 'npm', '10.2.0'],
    [{ 'yarn.lock': '__metadata:\n  version: 4\n' }, {}, 'yarn-berry', '2'],
    [{ 'yarn.lock': '__metadata:\n  version: 6\n' }, {}, 'yarn-berry', '3'],
    [{ 'yarn.lock': '__metadata:\n  version: 8\n', '.yarnrc.yml': '' }, {}, 'yarn-berry', '4'],
    [{ 'yarn.lock': '' }, { packageManager: 'yarn@1.22.19' }, 'yarn', '1.22.19'],
    [{ 'bun.lock': '' }, { packageManager: 'bun@1.3.14' }, 'bun', '1.3.14'],
    [{ 'bun.lockb': '' }, {}, 'bun', 'latest'],
    [{}, { engines: { bun: '1.x' } }, 'bun', '1.x'],
    [{}, { devEngines: { packageManager: { name: 'pnpm', version: '10.1.0' } } }, 'pnpm', '10.1.0'],
    [{}, {}, 'npm', undefined],
  ])('chooses the package manager and its version by %j and %j', async (files, more, tool, version) => {
    const source = await openSource({ 'package.json': JSON.stringify({ dependencies: { a: '1' }, ...more }), ...files });
    const manager = await findPackageManager(source, (await readPackageJson(source)) ?? {}, new Map());
    expect([manager.tool, manager.request?.version]).toEqual([tool, version ?? manager.request?.version]);
    if (version === undefined) expect(manager.request).toBeUndefined();
  });

  it.each<[Record<string, string>, object, Record<string, string>, string | undefined]>([
    [{}, {}, {}, undefined],
    [{}, { engines: { node: '22.x' } }, {}, '22.x'],
    [{ '.nvmrc': 'v20.11.0\n' }, { engines: { node: '>=18' } }, {}, 'v20.11.0'],
    [{ '.node-version': '22' }, {}, {}, '22'],
    [{ '.tool-versions': '# tools\nnodejs 18.20.5\npython 3.12' }, {}, {}, '18.20.5'],
    [{ 'mise.toml': '[tools]\nnode = "20"\n', '.nvmrc': '18' }, {}, {}, '20'],
    [{ '.mise.toml': '[tools]\nnode = { version = "20.1.0", postinstall = "false" }\n' }, {}, {}, '20.1.0'],
    [{ 'mise.toml': 'not toml [', '.nvmrc': '18' }, {}, {}, '18'],
    [{ '.nvmrc': '18' }, { volta: { node: '20.2.0' } }, {}, '20.2.0'],
    [{ '.nvmrc': '18' }, { volta: { node: '20.2.0' } }, { RAILPACK_NODE_VERSION: '22' }, '22'],
    [{}, { devEngines: { runtime: { name: 'node', version: '^24' } } }, {}, '^24'],
  ])('asks for the Node.js of %j, %j and %j', async (files, more, env, version) => {
    const plan = await planFor({ 'package.json': JSON.stringify({ main: 'index.js', ...more }), 'index.js': '', ...files }, env);
    expect(plan.notes[0]).toMatch(version === undefined ? /^Using Node.js 1\.2\.3$/ : `Using Node.js ${version} (`);
  });

  it('keeps node_modules for versions such as ~1.2.3, and for all packages of a workspace', async () => {
    const tilde = JSON.stringify({ dependencies: { 'is-number': '~7.0.0' } });
    expect((await planFor({ 'package.json': tilde, 'package-lock.json': '{}' })).tree?.paths).toEqual(['node_modules']);
    const workspace = await planFor({
      'package.json': JSON.stringify({ workspaces: ['packages/*', '!packages/c'], scripts: { build: 'true' } }),
      'package-lock.json': '{}',
      'packages/a/package.json': '{}',
      'packages/b/package.json': '{"dependencies":{"a":"workspace:*"}}',
      'packages/c/package.json': '{}',
      'packages/d/readme': '',
    });
    expect(workspace.tree?.paths).toEqual(['node_modules', 'packages/a/node_modules', 'packages/b/node_modules']);
    const byPath = JSON.stringify({ dependencies: { local: 'file:./local' } });
    expect((await planFor({ 'package.json': byPath, 'package-lock.json': '{}' })).tree).toBeUndefined();
  });

  it('skips the package manager over restored packages, unless scripts of the app run at each installation', async () => {
    const skips = async (scripts: object): Promise<boolean> => {
      const plan = await planFor({ 'package.json': manifestWith({ scripts }), 'package-lock.json': '{}' });
      const restored = plan.steps.find(({ when }) => when === 'if-restored');
      return (await restored?.skipIf?.(await openSource({}))) !== undefined;
    };
    expect(await skips({ start: 'node .' })).toBe(true);
    expect(await skips({ start: 'node .', postinstall: 'node make.js' })).toBe(false);
  });

  it('installs by `npm install` where package-lock.json does not match, and says so', async () => {
    const lock = JSON.stringify({ packages: { '': { dependencies: { 'is-number': '6.0.0' } } } });
    const plan = await planFor({ 'package.json': manifest, 'package-lock.json': lock });
    expect(stepsOf(plan)).toEqual(['npm install --no-package-lock --include=dev']);
    expect(plan.notes.at(-1)).toContain('package-lock.json does not match package.json (is-number)');
  });

  it('keeps development dependencies that the start uses', async () => {
    const keeps = async (start: string, files: Record<string, string> = {}): Promise<boolean> => {
      const app = {
        'package.json': JSON.stringify({ scripts: { start, serve: 'vite preview' }, devDependencies: { vite: '1' } }),
        ...files,
      };
      const prune = (await planFor(app)).steps.at(-1);
      expect(prune?.argv).toContain('prune');
      return (await prune?.skipIf?.(await openSource(files))) !== undefined;
    };
    expect(await keeps('node server.js')).toBe(false);
    expect(await keeps('vite preview --port $PORT')).toBe(true);
    expect(await keeps('npm run serve')).toBe(true);
    expect(await keeps('node server.js', { Procfile: 'web: vitest-cli' })).toBe(false);
    const bin = { 'node_modules/vite/package.json': '{"bin":{"vite-serve":"x.js"}}' };
    expect(await keeps('vite-serve', bin)).toBe(true);
    expect(await keeps('node server.js', { ...bin, Procfile: 'web: vite-serve' })).toBe(true);
  });

  it('without anything to start is refused before it installs', async () => {
    await expect(planFor({ 'package.json': '{}' })).rejects.toThrow('package.json has no "start" script');
    await expect(planFor({ 'package.json': '{}', Procfile: 'web: ./run' })).resolves.toBeDefined();
  });

  it.each<[string, object, Record<string, string>, string | undefined]>([
    ['a start script', { scripts: { start: 'node x.js' } }, {}, 'npm start'],
    ['"main"', { main: 'lib/x.js' }, { 'lib/x.js': '' }, 'node lib/x.js'],
    ['index.ts', {}, { 'index.ts': '' }, 'node index.ts'],
    ['Nuxt', {}, { '.output/server/index.mjs': '', '.output/public/index.html': '' }, 'node .output/server/index.mjs'],
    ['Next.js', { dependencies: { next: '1' } }, { '.next/BUILD_ID': '' }, 'next start'],
    ['SvelteKit', { devDependencies: { '@sveltejs/kit': '1' } }, { 'build/index.js': '' }, 'node build/index.js'],
    ['Astro with a server', { dependencies: { astro: '1' } }, { 'dist/server/entry.mjs': '' }, 'node dist/server/entry.mjs'],
    [
      'TanStack Start',
      { dependencies: { '@tanstack/react-start': '1' } },
      { 'dist/server/server.js': '', 'node_modules/srvx/bin/srvx.mjs': '' },
      'node node_modules/srvx/bin/srvx.mjs --prod -s ../client dist/server/server.js',
    ],
    [
      'TanStack Start without srvx at the top',
      { dependencies: { '@tanstack/solid-start': '1' } },
      { 'dist/server/server.js': '' },
      'vite preview --host 0.0.0.0 --port $PORT',
    ],
    ['Vite', { devDependencies: { vite: '1' } }, { 'index.html': '', 'dist/index.html': '' }, `${serve} '/app/dist' --fallback`],
    ['Astro', { dependencies: { astro: '1' } }, { 'dist/index.html': '' }, `${serve} '/app/dist'`],
    ['a site with a 404 page', {}, { 'dist/index.html': '', 'dist/404.html': '' }, `${serve} '/app/dist'`],
    [
      'Create React App',
      { scripts: { start: 'react-scripts start' } },
      { 'build/index.html': '' },
      `${serve} '/app/build' --fallback`,
    ],
    [
      'Angular',
      { scripts: { start: 'ng serve' } },
      { 'dist/shop/browser/index.html': '' },
      `${serve} '/app/dist/shop/browser' --fallback`,
    ],
    [
      'what `vite preview` would show',
      { scripts: { start: 'vite preview --port 3000' } },
      { 'dist/index.html': '' },
      `${serve} '/app/dist' --fallback`,
    ],
    [
      'Docusaurus',
      { dependencies: { '@docusaurus/core': '3' }, scripts: { start: 'docusaurus start' } },
      { 'build/index.html': '' },
      `${serve} '/app/build'`,
    ],
    [
      'an export of Next.js',
      { dependencies: { next: '1' }, scripts: { start: 'next start' } },
      { 'out/index.html': '' },
      `${serve} '/app/out'`,
    ],
    [
      'React Router without a server',
      { scripts: { start: 'react-router-serve ./build/server/index.js' } },
      { 'build/client/index.html': '' },
      `${serve} '/app/build/client' --fallback`,
    ],
    [
      'React Router whose server is for the build alone',
      { scripts: { start: 'react-router-serve ./build/server/index.js' } },
      { 'build/client/index.html': '', 'build/server/index.js': '', 'react-router.config.ts': 'export default { ssr: false };' },
      `${serve} '/app/build/client' --fallback`,
    ],
    [
      'React Router',
      { scripts: { start: 'react-router-serve ./build/server/index.js' } },
      { 'build/client/index.html': '', 'build/server/index.js': '' },
      'npm start',
    ],
    [
      'a file that the build compiled',
      { scripts: { build: 'tsc' } },
      { 'dist/index.js': '', 'src/index.ts': '' },
      'node dist/index.js',
    ],
    ['a file in src', {}, { 'src/index.ts': '' }, 'node src/index.ts'],
    [
      'a site whose entry is main.js',
      { scripts: { build: 'vite build' } },
      { 'main.js': '', 'index.html': '', 'dist/index.html': '' },
      `${serve} '/app/dist' --fallback`,
    ],
    [
      'a server beside the site that it serves',
      { scripts: { build: 'vite build' } },
      { 'server.js': '', 'dist/index.html': '' },
      'node server.js',
    ],
    [
      'a site of many pages',
      { scripts: { build: 'x' } },
      { 'dist/index.html': '', 'dist/a/index.html': '' },
      `${serve} '/app/dist' --fallback`,
    ],
    [
      'Angular with a server',
      { dependencies: { '@angular/ssr': '20' }, scripts: { start: 'ng serve', build: 'ng build' } },
      { 'dist/shop/browser/index.csr.html': '', 'dist/shop/server/server.mjs': '' },
      'node dist/shop/server/server.mjs',
    ],
    [
      'SvelteKit whose adapter knows no host',
      { devDependencies: { '@sveltejs/kit': '2' }, scripts: { build: 'vite build' } },
      { '.svelte-kit/output/server/index.js': '', 'src/app.js': '' },
      'vite preview --host 0.0.0.0 --port $PORT',
    ],
    ...[
      'PORT=3000 react-scripts start',
      'cross-env BROWSER=none craco start',
      'set PORT=3000 && react-scripts start',
      'ember serve',
    ].map((start): [string, object, Record<string, string>, string] => [
      `what \`${start}\` would show`,
      { scripts: { start } },
      { 'build/index.html': '' },
      `${serve} '/app/build' --fallback`,
    ]),
    [
      'a server that a variable precedes',
      { scripts: { start: 'NODE_ENV=production node a.js' } },
      { 'build/index.html': '' },
      'npm start',
    ],
    ['nothing', {}, {}, undefined],
  ])('starts %s', async (_, more, files, web) => {
    const built = await openSource(files);
    const app = { manifest: parsePackageJson(JSON.stringify(more)), manager: 'npm', runsOnBun: false } as const;
    expect((await findNodeProcesses(built, app))['web']).toBe(web);
  });
});
