/**
 * Real builds by the package managers and compilers that take longest, which `npm test` leaves out: `npm run test:builders`.
 * What each of them runs is in shared/platform/local/builds/builders/builder-plans.test.ts.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { integrity, manifest, usesIt } from '#test/support/builds/npm-sources.ts';
import { openRealBuilds, type RealBuilds } from '#test/support/builds/real-builds.ts';

let real: RealBuilds;
beforeAll(async () => {
  real = await openRealBuilds();
});
afterAll(() => real.stop());

describe('a Node.js app', () => {
  it('with pnpm-lock.yaml is installed by pnpm', async () => {
    const appId = newUuid<AppId>();
    const lock = `lockfileVersion: '9.0'\n\nsettings:\n  autoInstallPeers: true\n  excludeLinksFromLockfile: false\n\nimporters:\n\n  .:\n    dependencies:\n      is-number:\n        specifier: 7.0.0\n        version: 7.0.0\n\npackages:\n\n  is-number@7.0.0:\n    resolution: {integrity: ${integrity}}\n    engines: {node: '>=0.12.0'}\n\nsnapshots:\n\n  is-number@7.0.0: {}\n`;
    const files = { 'package.json': manifest(), 'pnpm-lock.yaml': lock, 'server.js': usesIt };
    const built = await real.succeed(appId, files);
    expect(built.log).toContain('pnpm install --frozen-lockfile, cache cold');
    expect(await (await real.visit(appId, built.imageUrl)).text()).toBe('true');
    expect((await real.succeed(appId, files)).log).toContain('node_modules reused');
  });
});

describe('a Python app', () => {
  const app =
    'import os\nfrom wsgiref.simple_server import make_server\nimport six\n\ndef app(env, start):\n    start("200 OK", [])\n    return [six.b("six " + six.__version__)]\n\nmake_server("127.0.0.1", int(os.environ["PORT"]), app).serve_forever()\n';

  it('is installed from pyproject.toml', async () => {
    const appId = newUuid<AppId>();
    const project =
      '[project]\nname = "hello"\nversion = "1.0"\ndependencies = ["six==1.16.0"]\n[tool.setuptools]\npy-modules = []\n';
    const built = await real.succeed(appId, { 'pyproject.toml': project, 'app.py': app, Procfile: 'web: python app.py' });
    expect(await (await real.visit(appId, built.imageUrl)).text()).toBe('six 1.16.0');
  });
});

describe('a Go app', () => {
  // The second finds the standard library compiled: the cache is the app's.
  const appId = newUuid<AppId>();

  it('is compiled, and its one program is the web process', async () => {
    // Without an import: the packages of the standard library take longer to compile than everything else here.
    const main = 'package main\n\nfunc main() { println("hello from go") }\n';
    const built = await real.succeed(appId, { 'go.mod': 'module example.com/hello\n\ngo 1.19\n', 'main.go': main });
    expect(built.log).toContain('-----> Go app detected (go.mod)');
    expect(built.processes).toEqual({ web: 'bin/hello' });
    expect((await real.caches.readCache(appId))?.usedBytes).toBeGreaterThan(100_000);
  });

  it('that does not compile shows where, and fails', async () => {
    const { outcome, log } = await real.build(appId, {
      'go.mod': 'module example.com/hello\n\ngo 1.19\n',
      'main.go': 'package main\n\nfunc main() { nonsense() }\n',
    });
    expect(log).toContain('main.go:3');
    expect(outcome).toMatchObject({ status: 'failed', cause: '`go build -o bin/ ./...` exited with code 1.' });
  });
});

describe('an app in another version than the host has', () => {
  it('of Go is compiled by that version', async () => {
    const built = await real.succeed(newUuid<AppId>(), {
      'go.mod': 'module example.com/hello\n\ngo 1.19\n',
      'main.go': 'package main\n\nfunc main() {}\n',
      '.go-version': '1.25.3\n',
    });
    expect(built.log).toContain('Using Go 1.25.3 (.go-version asks for 1.25.3)');
  });

  it('of Deno runs on it', async () => {
    const appId = newUuid<AppId>();
    const main =
      "Deno.serve({ port: Number(Deno.env.get('PORT')), hostname: '127.0.0.1' }, () => new Response(Deno.version.deno));\n";
    const built = await real.succeed(appId, { 'deno.json': '{}', 'main.ts': main, '.deno-version': '2.2.2' });
    expect(await (await real.visit(appId, built.imageUrl)).text()).toBe('2.2.2');
  });

  it('of Bun runs on it', async () => {
    const appId = newUuid<AppId>();
    const main = 'Bun.serve({ port: process.env.PORT, hostname: "127.0.0.1", fetch: () => new Response(Bun.version) });\n';
    const built = await real.succeed(appId, {
      'package.json': '{"packageManager":"bun@1.3.14","main":"main.ts"}',
      'main.ts': main,
    });
    expect(await (await real.visit(appId, built.imageUrl)).text()).toBe('1.3.14');
  });
});

describe('a Java app', () => {
  it('is built by Maven, and its jar answers', async () => {
    const appId = newUuid<AppId>();
    const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>com.example</groupId><artifactId>hello</artifactId><version>1.0</version>
<properties><maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target></properties>
<build><plugins><plugin><groupId>org.apache.maven.plugins</groupId><artifactId>maven-jar-plugin</artifactId><version>3.3.0</version>
<configuration><archive><manifest><mainClass>Hello</mainClass></manifest></archive></configuration></plugin></plugins></build></project>`;
    const main = `import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
public class Hello {
  public static void main(String[] words) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(System.getenv("PORT"))), 0);
    server.createContext("/", exchange -> {
      exchange.sendResponseHeaders(200, 5);
      exchange.getResponseBody().write("hello".getBytes());
      exchange.close();
    });
    server.start();
  }
}
`;
    const built = await real.succeed(appId, { 'pom.xml': pom, 'src/main/java/Hello.java': main });
    expect(built.processes['web']).toContain('-jar target/hello-1.0.jar');
    expect(await (await real.visit(appId, built.imageUrl)).text()).toBe('hello');
  });
});
