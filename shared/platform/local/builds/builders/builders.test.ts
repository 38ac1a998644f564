/** Real builds with the real tools and registries, and the built apps answering over HTTP. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type AppId, type BuildId, newUuid } from '#shared/ids.ts';
import type { BuildOutcome } from '#shared/platform/builds.ts';
import { buildSpec, buildToEnd, sourceOf } from '#shared/platform/testing/build-specs.ts';
import { openTestBuilds, type TestBuilds } from '#test/support/builds/test-builds.ts';
import { freePort } from '#test/support/servers/free-port.ts';

// Registries may be slow, and compilers on a busy machine are.
vi.setConfig({ testTimeout: 120_000 });

let ground: TestBuilds;
beforeAll(async () => {
  ground = await openTestBuilds();
});
afterAll(() => ground.stop());

type Files = Readonly<Record<string, string>>;

async function build(appId: AppId, files: Files, env: Files = {}): Promise<{ outcome: BuildOutcome; log: string }> {
  const { state } = await ground.caches.ensureCache(appId);
  const spec = buildSpec(sourceOf(files), {
    appId,
    env,
    buildId: newUuid<BuildId>(),
    cacheState: state === 'existed' ? 'Warm' : 'Cold',
  });
  const { outcome, lines } = await buildToEnd(ground.builds, spec);
  return { outcome, log: lines.join('\n') };
}

async function succeed(
  appId: AppId,
  files: Files,
  env: Files = {},
): Promise<{ imageUrl: string; log: string; processes: Files }> {
  const { outcome, log } = await build(appId, files, env);
  if (outcome.status !== 'succeeded') throw new Error(`${JSON.stringify(outcome)}\n${log}`);
  return { ...outcome, log };
}

/** Starts the image's web process and asks it for `path`. */
async function visit(appId: AppId, imageUrl: string, path = '/'): Promise<Response> {
  const image = await ground.images.readImage(imageUrl);
  const port = await freePort();
  const child = await ground.sandbox.spawn(
    {
      id: `web-${randomUUID()}`,
      uid: await ground.sandbox.ensureUid(appId),
      argv: ['/bin/sh', '-c', image.processes['web'] ?? 'false'],
      env: { ...image.env, PORT: String(port) },
      cwd: '/app',
      mounts: image.mounts,
      layer: { source: image.root, target: '/app', bytes: 64 * 1024 * 1024 },
      tmp: { bytes: 64 * 1024 * 1024 },
      limits: { memoryBytes: 512 * 1024 * 1024, processes: 128, fileBytes: 64 * 1024 * 1024 },
      dieWithParent: true,
    },
    { stdout: 'pipe', stderr: 'pipe' },
  );
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (said += String(chunk)));
  let ended = false;
  void child.exited.then(() => (ended = true));
  try {
    for (;;) {
      if (ended) throw new Error(`It exited before it listened: ${said}`);
      const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined);
      if (answer !== undefined) return new Response(await answer.text(), answer);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  } finally {
    await ground.sandbox.end(child.record);
  }
}

const server = (body: string): string =>
  `require('node:http').createServer((_, answer) => answer.end(${body})).listen(process.env.PORT);\n`;
// One small package without dependencies of its own, as each lockfile has it.
const manifest = (more: object = {}): string =>
  JSON.stringify({ name: 'hello', version: '1.0.0', dependencies: { 'is-number': '7.0.0' }, ...more });
const integrity = 'sha512-41Cifkg6e8TylSpdtTpeLVMqvSBEVzTttHvERD741+pnZ8ANv0004MRL43QKPDlK9cGvNp6NZWZUBlbGXYxxng==';
const npmLock = (version = '7.0.0'): string =>
  JSON.stringify({
    name: 'hello',
    version: '1.0.0',
    lockfileVersion: 3,
    requires: true,
    packages: {
      '': { name: 'hello', version: '1.0.0', dependencies: { 'is-number': '7.0.0' } },
      'node_modules/is-number': { version, integrity },
    },
  });
const usesIt = server(`String(require('is-number')(5))`);

const has = (program: string): boolean => (process.env['PATH'] ?? '').split(':').some((path) => existsSync(join(path, program)));

const rustServer = `use std::io::{Read, Write};
fn main() {
    let port = std::env::var("PORT").unwrap();
    let listener = std::net::TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = write!(stream, "HTTP/1.1 200 OK\\r\\ncontent-length: {}\\r\\nconnection: close\\r\\n\\r\\n{}", word::WORD.len(), word::WORD);
    }
}
`;

describe('a Node.js app', () => {
  it('is installed from package-lock.json; the second build finds node_modules in the cache, until the lockfile changes', async () => {
    const appId = newUuid<AppId>();
    const files = {
      'package.json': manifest({ scripts: { start: 'node server.js' } }),
      'package-lock.json': npmLock(),
      'server.js': usesIt,
    };
    const cold = await succeed(appId, files);
    expect(cold.log).toContain('-----> Node.js app detected (package.json)');
    expect(cold.log).toContain('       npm ci, cache cold');
    expect(cold.processes).toEqual({ web: 'npm start' });
    expect(await (await visit(appId, cold.imageUrl)).text()).toBe('true');

    const warm = await succeed(appId, files);
    expect(warm.log).toContain('cache warm, node_modules reused');
    expect(warm.imageUrl).toBe(cold.imageUrl);

    const changed = await succeed(appId, {
      ...files,
      'package.json': manifest({ version: '1.0.1', scripts: { start: 'node server.js' } }),
    });
    expect(changed.log).toContain('npm ci, cache warm');

    await ground.caches.deleteCache(appId);
    expect((await succeed(appId, files)).log).toContain('npm ci, cache cold');
  });

  it('runs its build script with the variables of the app, and neither log nor image knows them', async () => {
    const appId = newUuid<AppId>();
    const script = `node -e "require('fs').writeFileSync('built.txt', String(process.env.TOKEN.length) + process.env.SOURCE_VERSION)"`;
    const files = {
      'package.json': JSON.stringify({ scripts: { build: script } }),
      'server.js': server(`require('fs').readFileSync('built.txt')`),
    };
    const built = await succeed(appId, files, { TOKEN: 'canary-91ce', SOURCE_VERSION: 'x' });
    expect(await (await visit(appId, built.imageUrl)).text()).toBe('11x');
    expect(built.log).not.toContain('canary-91ce');
    expect(built.processes).toEqual({ web: 'node server.js' });
  });

  it('with pnpm-lock.yaml is installed by pnpm', async () => {
    const appId = newUuid<AppId>();
    const lock = `lockfileVersion: '9.0'\n\nsettings:\n  autoInstallPeers: true\n  excludeLinksFromLockfile: false\n\nimporters:\n\n  .:\n    dependencies:\n      is-number:\n        specifier: 7.0.0\n        version: 7.0.0\n\npackages:\n\n  is-number@7.0.0:\n    resolution: {integrity: ${integrity}}\n    engines: {node: '>=0.12.0'}\n\nsnapshots:\n\n  is-number@7.0.0: {}\n`;
    const files = { 'package.json': manifest(), 'pnpm-lock.yaml': lock, 'server.js': usesIt };
    const built = await succeed(appId, files);
    expect(built.log).toContain('pnpm install --frozen-lockfile, cache cold');
    expect(await (await visit(appId, built.imageUrl)).text()).toBe('true');
    expect((await succeed(appId, files)).log).toContain('node_modules reused');
  });

  it('with yarn.lock is installed by yarn', async () => {
    const appId = newUuid<AppId>();
    const lock = `# THIS IS AN AUTOGENERATED FILE. DO NOT EDIT THIS FILE DIRECTLY.\n# yarn lockfile v1\n\n\nis-number@7.0.0:\n  version "7.0.0"\n  integrity ${integrity}\n`;
    const built = await succeed(appId, { 'package.json': manifest(), 'yarn.lock': lock, 'server.js': usesIt });
    expect(built.log).toContain('yarn install, cache cold');
    expect(await (await visit(appId, built.imageUrl)).text()).toBe('true');
  });

  it("gets the platform's own Node where the host's is not what it asks for", async () => {
    const appId = newUuid<AppId>();
    const built = await succeed(appId, {
      'package.json': JSON.stringify({ engines: { node: '>=26' }, scripts: { start: 'node server.js' } }),
      'server.js': server('process.version'),
    });
    expect(built.log).toContain('(package.json asks for >=26)');
    expect(await (await visit(appId, built.imageUrl)).text()).toMatch(/^v26\./);
  });

  it.each<[string, Files, RegExp]>([
    [
      'a lockfile that does not match',
      { 'package.json': manifest({ dependencies: { 'is-odd': '3.0.1' } }), 'package-lock.json': npmLock() },
      /^package-lock\.json does not match package\.json\. Run `npm install`/,
    ],
    [
      'a package that does not exist',
      { 'package.json': manifest({ dependencies: { '@paas-test/does-not-exist': '1.0.0' } }) },
      /^The package @paas-test\/does-not-exist@1\.0\.0 is not in the registry/,
    ],
    ['a package.json that is none', { 'package.json': '{"name": ' }, /^package\.json is not valid JSON/],
    [
      'an engine that nobody has',
      { 'package.json': JSON.stringify({ engines: { node: '0.10.x' } }) },
      /^package\.json asks for Node\.js 0\.10\.x, and this platform has/,
    ],
    ['nothing to run', { 'package.json': '{}' }, /^package\.json has no "start" script/],
    [
      'a build script that fails',
      { 'package.json': JSON.stringify({ scripts: { build: 'exit 7' } }) },
      /^`npm run build` exited with code 7\.$/,
    ],
  ])('that has %s fails with a cause that says so', async (_, files, cause) => {
    const { outcome } = await build(newUuid<AppId>(), files);
    expect(outcome).toEqual({ status: 'failed', cause: expect.stringMatching(cause) });
  });

  it('whose build takes too much memory fails with a cause that says so', async () => {
    const small = await openTestBuilds({ memoryBytes: 300 * 1024 * 1024 });
    const files = {
      'package.json': JSON.stringify({ scripts: { build: `node -e "const a=[]; for(;;) a.push(Buffer.alloc(1<<24, 1))"` } }),
    };
    const { outcome } = await buildToEnd(small.builds, buildSpec(sourceOf(files)));
    expect(outcome).toMatchObject({ cause: expect.stringMatching(/^Out of memory: a build may use 300 MiB/) });
    await small.stop();
  });

  it('that is larger than an image may be fails with a cause that says so', async () => {
    const small = await openTestBuilds({ slugBytes: 1024 * 1024 });
    const files = {
      'package.json': JSON.stringify({ scripts: { build: 'head -c 2000000 /dev/zero > large', start: 'node .' } }),
    };
    const { outcome } = await buildToEnd(small.builds, buildSpec(sourceOf(files)));
    expect(outcome).toMatchObject({ cause: expect.stringMatching(/^The built app is larger than 1\.0 MiB/) });
    await small.stop();
  });
});

describe('a Python app', () => {
  const app =
    'import os\nfrom wsgiref.simple_server import make_server\nimport six\n\ndef app(env, start):\n    start("200 OK", [])\n    return [six.b("six " + six.__version__)]\n\nmake_server("127.0.0.1", int(os.environ["PORT"]), app).serve_forever()\n';

  it('is installed from requirements.txt into an environment that the second build reuses', async () => {
    const appId = newUuid<AppId>();
    const files = { 'requirements.txt': 'six==1.16.0\n', 'app.py': app, Procfile: 'web: python app.py\nrelease: python -c 1\n' };
    const cold = await succeed(appId, files);
    expect(cold.log).toContain('-----> Python app detected (requirements.txt)');
    expect(cold.log).toContain('pip install -r requirements.txt, cache cold');
    expect(await (await visit(appId, cold.imageUrl)).text()).toBe('six 1.16.0');
    expect((await succeed(appId, files)).log).toContain('cache warm, environment reused');
  });

  it('is installed from pyproject.toml', async () => {
    const appId = newUuid<AppId>();
    const project =
      '[project]\nname = "hello"\nversion = "1.0"\ndependencies = ["six==1.16.0"]\n[tool.setuptools]\npy-modules = []\n';
    const built = await succeed(appId, { 'pyproject.toml': project, 'app.py': app, Procfile: 'web: python app.py' });
    expect(await (await visit(appId, built.imageUrl)).text()).toBe('six 1.16.0');
  });

  it('without a Procfile is told to add one', async () => {
    const { outcome } = await build(newUuid<AppId>(), { 'requirements.txt': '' });
    expect(outcome).toMatchObject({ status: 'failed', cause: expect.stringContaining('Add one with a line as: web: gunicorn') });
  });
});

// Debian's packages put both on /usr; without them there is nothing to build with.
describe.skipIf(!has('cargo') || !has('cc'))('a Rust app', () => {
  it('is compiled, again from the warm cache, and answers', async () => {
    const appId = newUuid<AppId>();
    const files = {
      'Cargo.toml':
        '[package]\nname = "greeter"\nversion = "0.1.0"\nedition = "2021"\n\n[workspace]\nmembers = ["word"]\n\n[dependencies]\nword = { path = "word" }\n',
      'word/Cargo.toml': '[package]\nname = "word"\nversion = "0.1.0"\nedition = "2021"\n',
      'word/src/lib.rs': 'pub const WORD: &str = "hello from rust";\n',
      'src/main.rs': rustServer,
    };
    const cold = await succeed(appId, files);
    expect(cold.log).toContain('-----> Rust app detected (Cargo.toml)');
    expect(cold.processes).toEqual({ web: 'bin/greeter' });
    expect(await (await visit(appId, cold.imageUrl)).text()).toBe('hello from rust');
    const warm = await succeed(appId, files);
    expect(warm.log).toContain('cache warm');
    expect(await readdir(join(ground.dataDir, 'caches', appId, 'tools'))).toEqual(['cargo', 'cargo-target']);
    expect(await (await visit(appId, warm.imageUrl)).text()).toBe('hello from rust');
  });

  it('that does not compile fails with what the compiler said', async () => {
    const { outcome, log } = await build(newUuid<AppId>(), {
      'Cargo.toml': '[package]\nname = "broken"\nversion = "0.1.0"\nedition = "2021"\n',
      'src/main.rs': 'fn main() { nonsense() }\n',
    });
    expect(log).toContain('cannot find function `nonsense`');
    expect(outcome).toMatchObject({ status: 'failed' });
  });
});

describe('a Go app', () => {
  // The second finds the standard library compiled: the cache is the app's.
  const appId = newUuid<AppId>();

  it('is compiled, and its one program is the web process', async () => {
    // Without an import: the packages of the standard library take longer to compile than everything else here.
    const main = 'package main\n\nfunc main() { println("hello from go") }\n';
    const built = await succeed(appId, { 'go.mod': 'module example.com/hello\n\ngo 1.19\n', 'main.go': main });
    expect(built.log).toContain('-----> Go app detected (go.mod)');
    expect(built.processes).toEqual({ web: 'bin/hello' });
    expect((await ground.caches.readCache(appId))?.usedBytes).toBeGreaterThan(100_000);
  });

  it('that does not compile shows where, and fails', async () => {
    const { outcome, log } = await build(appId, {
      'go.mod': 'module example.com/hello\n\ngo 1.19\n',
      'main.go': 'package main\n\nfunc main() { nonsense() }\n',
    });
    expect(log).toContain('main.go:3');
    expect(outcome).toMatchObject({ status: 'failed', cause: '`go build -o bin/ ./...` exited with code 1.' });
  });
});

describe('a static site', () => {
  it('is served as it is', async () => {
    const appId = newUuid<AppId>();
    const built = await succeed(appId, { 'index.html': '<h1>hello</h1>', 'a/b.css': 'a{}' });
    expect(built.log).toContain('-----> Static site detected (index.html)');
    const answer = await visit(appId, built.imageUrl, '/a/b.css');
    expect(answer.headers.get('content-type')).toBe('text/css; charset=utf-8');
    expect(await answer.text()).toBe('a{}');
  });
});
