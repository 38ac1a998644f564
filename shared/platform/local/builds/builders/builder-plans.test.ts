import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Toolchains } from '../../toolchains/toolchains.ts';
import type { BuildPlan } from '../plans/builder.ts';
import { openSourceTree, type SourceTree } from '../plans/source-tree.ts';
import { builders } from './builders.ts';
import { findNodeProcesses } from './node/node-processes.ts';
import { parsePackageJson, readPackageJson } from './node/package-json.ts';
import { findPackageManager } from './node/package-manager.ts';
import { findPythonProcesses } from './python/python-processes.ts';
import { readPythonProject } from './python/python-project.ts';

const toolchain = { version: '1.2.3', path: ['/opt/tool/bin'], mounts: [] };
const toolchains: Toolchains = {
  findNode: async (request) => ({ ...toolchain, version: request?.version ?? '1.2.3', headers: undefined }),
  findTool: async (name, { version }) => ({ version, path: [`/opt/tools/${name}`], mounts: [] }),
  findPython: async () => ({ ...toolchain, executable: '/opt/tool/bin/python3', pip: true }),
  findGo: async (request) => ({ ...toolchain, version: request?.version ?? '1.2.3' }),
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
async function planFor(
  files: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
): Promise<BuildPlan & { builder: string }> {
  const source = await openSource(files);
  for (const builder of builders) {
    if ((await builder.detect(source)) === undefined) continue;
    return { ...(await builder.plan(source, { toolchains, env, cache: 'cold' })), builder: builder.name };
  }
  throw new Error('no builder detects this');
}

/** Each step in one line, with the condition under which it runs. */
const stepsOf = ({ steps }: BuildPlan): string[] =>
  steps.map(({ when, argv }) => [...(when === undefined ? [] : [`${when}:`]), ...argv].join(' '));

describe('the plan of a Node.js app', () => {
  const manifestWith = (more: object): string => JSON.stringify({ dependencies: { 'is-number': '7.0.0' }, ...more });
  const manifest = manifestWith({});
  const serve = '/opt/paas/node/bin/node /opt/paas/static-server/main.ts';

  it('with pnpm-lock.yaml installs exactly that by the pnpm which wrote it', async () => {
    const plan = await planFor({ 'package.json': manifest, 'pnpm-lock.yaml': "lockfileVersion: '9.0'\n" });
    const install = 'pnpm install --frozen-lockfile --prefer-offline --prod=false';
    expect(plan.builder).toBe('node');
    expect(stepsOf(plan)).toEqual([`if-restored: ${install}`, `unless-restored: ${install}`]);
    expect(plan.notes).toContainEqual('Using pnpm 10 (pnpm-lock.yaml asks for 10)');
    expect(plan.cacheDirectories).toEqual(['npm', 'pnpm']);
    expect(plan.env).toMatchObject({ npm_config_store_dir: '/cache/pnpm', CI: 'true' });
    expect(plan.tree).toMatchObject({ paths: ['node_modules'] });
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
      'React Router',
      { scripts: { start: 'react-router-serve ./build/server/index.js' } },
      { 'build/client/index.html': '', 'build/server/index.js': '' },
      'npm start',
    ],
    ['nothing', {}, {}, undefined],
  ])('starts %s', async (_, more, files, web) => {
    const built = await openSource(files);
    const app = { manifest: parsePackageJson(JSON.stringify(more)), manager: 'npm', runsOnBun: false } as const;
    expect((await findNodeProcesses(built, app))['web']).toBe(web);
  });
});

describe('the plan of a Python app', () => {
  const python = '/opt/tool/bin/python3';

  it('with a pyproject.toml that is built installs the project into an environment, and caches downloads alone', async () => {
    const plan = await planFor({ 'pyproject.toml': '[project]\nname = "hello"\n[build-system]\nrequires = ["hatchling"]\n' });
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

  it.each([
    [
      'requirements.txt',
      { 'requirements.txt': 'six', 'pyproject.toml': '', 'uv.lock': '' },
      'install --disable-pip-version-check -r requirements.txt',
    ],
    ['uv.lock', { 'pyproject.toml': '[project]\nname = "a"', 'uv.lock': '' }, 'uv sync --locked --no-dev --no-editable'],
    ['poetry.lock', { 'pyproject.toml': '[tool.poetry]\nname = "a"', 'poetry.lock': '' }, 'uvx poetry install'],
    ['pdm.lock', { 'pyproject.toml': '[project]\nname = "a"', 'pdm.lock': '' }, 'uvx pdm install --prod --no-editable --check'],
    ['Pipfile.lock', { Pipfile: '', 'Pipfile.lock': '{}' }, 'uvx pipenv install --deploy --ignore-pipfile'],
    ['Pipfile', { Pipfile: '' }, 'uvx pipenv install --skip-lock'],
    ['pyproject.toml', { 'pyproject.toml': '[project]\nname = "a"' }, 'uv pip install -r pyproject.toml'],
  ])('installs by the tool that %s belongs to', async (_, files, command) => {
    expect(stepsOf(await planFor(files as Record<string, string>)).join('\n')).toContain(command);
  });

  it.each<[Record<string, string>, string]>([
    [{ '.python-version': '# which\n3.11.7\n' }, '.python-version asks for 3.11.7'],
    [{ 'runtime.txt': 'python-3.12.1\n' }, 'runtime.txt asks for 3.12.1'],
    [{ '.tool-versions': 'python 3.9.23\n' }, '.tool-versions asks for 3.9.23'],
    [{ 'pyproject.toml': '[project]\nname="a"\nrequires-python = ">=3.11"\n' }, 'in pyproject.toml asks for >=3.11'],
    [{ Pipfile: '[requires]\npython_version = "3.13"\n' }, 'Pipfile asks for 3.13'],
  ])('says which Python %j asks for', async (files, note) => {
    expect((await planFor({ 'main.py': '', ...files })).notes[0]).toContain(note);
  });

  it('collects the static files of Django where the settings say where to', async () => {
    const django = { 'requirements.txt': 'django', 'manage.py': '', 'site/settings.py': 'STATIC_ROOT = BASE_DIR / "static"\n' };
    expect(stepsOf(await planFor(django)).at(-1)).toBe('python manage.py collectstatic --noinput');
    expect(stepsOf(await planFor(django, { DISABLE_COLLECTSTATIC: '1' })).at(-1)).toContain('pip');
    expect(stepsOf(await planFor({ ...django, 'site/settings.py': '' })).at(-1)).toContain('pip');
  });

  it.each<[string, Record<string, string>, string | undefined]>([
    ['Django', { 'manage.py': '', 'shop/wsgi.py': '', '.venv/bin/gunicorn': '' }, 'gunicorn shop.wsgi --bind 0.0.0.0:$PORT'],
    ['Django without gunicorn', { 'manage.py': '', 'shop/wsgi.py': '' }, 'python manage.py runserver 0.0.0.0:$PORT'],
    ['FastAPI', { 'main.py': 'api = FastAPI()', '.venv/bin/uvicorn': '' }, 'uvicorn main:api --host 0.0.0.0 --port $PORT'],
    ['FastHTML', { 'main.py': 'app, rt = fast_app()', '.venv/bin/uvicorn': '' }, 'uvicorn main:app --host 0.0.0.0 --port $PORT'],
    ['Flask', { 'app.py': 'app = Flask(__name__)', '.venv/bin/gunicorn': '' }, 'gunicorn app:app --bind 0.0.0.0:$PORT'],
    ['Flask without a server', { 'app.py': 'app = Flask(__name__)' }, 'python app.py'],
    ['a script', { 'bot.py': '' }, 'python bot.py'],
    ['nothing', { 'lib/a.py': '' }, undefined],
  ])('starts %s', async (_, files, web) => {
    const source = await openSource(files);
    expect((await findPythonProcesses(source, await readPythonProject(source)))['web']).toBe(web);
  });

  it('is refused with the place of the fault if a file is not valid', async () => {
    await expect(planFor({ 'pyproject.toml': '[project\n' })).rejects.toThrow(/^pyproject\.toml is not valid TOML: /);
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

  it('installs each package of a virtual workspace that has programs', async () => {
    const plan = await planFor({
      'Cargo.toml': '[workspace]\nmembers = ["crates/*", "tools"]\n',
      'crates/lib/Cargo.toml': manifest,
      'crates/web/Cargo.toml': manifest,
      'crates/web/src/main.rs': '',
      'tools/Cargo.toml': manifest,
      'tools/src/bin/one.rs': '',
    });
    expect(stepsOf(plan)).toEqual([
      'cargo install --path crates/web --root /app --no-track --force',
      'cargo install --path tools --root /app --no-track --force',
    ]);
    await expect(planFor({ 'Cargo.toml': '[workspace]\nmembers = []\n' })).rejects.toThrow('has a program');
  });

  it.each<[Record<string, string>, string]>([
    [{ 'rust-toolchain.toml': '[toolchain]\nchannel = "1.59.0"\n' }, 'rust-toolchain.toml asks for 1.59.0'],
    [{ 'rust-toolchain': 'nightly\n' }, 'rust-toolchain asks for nightly'],
    [{ '.tool-versions': 'rust 1.88.0\n' }, '.tool-versions asks for 1.88.0'],
    [{ 'Cargo.toml': `${manifest}rust-version = "1.56"\n` }, '"rust-version" in Cargo.toml asks for >=1.56'],
  ])('asks for the Rust of %j', async (files, note) => {
    expect((await planFor({ 'Cargo.toml': manifest, ...files })).notes[0]).toContain(note);
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

  it('builds every module of a workspace', async () => {
    const plan = await planFor({ 'go.work': 'go 1.23\n\nuse (\n\t./api\n\t./shared // both\n)\nuse tools\n' });
    expect(stepsOf(plan)).toEqual(['go build -o bin/ ./api/... ./shared/... ./tools/...']);
  });

  it.each<[Record<string, string>, string]>([
    [{ 'go.mod': module }, 'Using Go >=1.19 (go.mod asks for >=1.19)'],
    [{ 'go.mod': `${module}toolchain go1.25.3\n` }, 'Using Go >=1.25.3 (go.mod asks for >=1.25.3)'],
    [{ 'go.mod': module, 'mise.toml': '[tools]\ngo = "1.25.3"\n' }, 'Using Go 1.25.3 (mise.toml asks for 1.25.3)'],
    [{ 'go.mod': module, '.tool-versions': 'golang 1.24.1\n' }, 'Using Go 1.24.1 (.tool-versions asks for 1.24.1)'],
  ])('asks for the Go of %j', async (files, note) => {
    expect((await planFor(files)).notes).toEqual([note]);
  });
});
