import { describe, expect, it } from 'vitest';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import { openPlanFixture, plainContext, stepsOf, toolchains } from '#test/support/builds/plan-fixture.ts';
import { combinePlans } from '../plans/combine-plans.ts';
import { applyOverrides, readOverrides } from '../plans/overrides.ts';
import { readAppOverrides } from '../plans/paas-file.ts';
import { readVersionPins } from '../plans/version-pins.ts';
import { chooseBuilders } from './choose-builders.ts';
import { findPinnedTools } from './pinned-tools.ts';
import { planApp } from './plan-app.ts';

const { openSource, planFor } = openPlanFixture();

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

describe('what a Rust app starts', () => {
  it.each<[string, Record<string, string>, string[], string | undefined]>([
    ['default-run = "tool"\n', {}, ['tool', 'server'], 'bin/tool'],
    ['', { RAILPACK_RUST_BIN: 'tool' }, ['tool', 'server'], 'bin/tool'],
    ['', {}, ['tool', 'server'], 'bin/server'],
    ['', {}, ['tool', 'other'], undefined],
    ['[dependencies]\nrocket = "0.5"\n', {}, ['shop'], 'ROCKET_ADDRESS=0.0.0.0 ROCKET_PORT=$PORT bin/shop'],
  ])('with %j and %j of %j', async (manifest, env, programs, web) => {
    const plan = await planFor({ 'Cargo.toml': `[package]\nname = "shop"\n${manifest}` }, env);
    const built = await openSource(Object.fromEntries(programs.map((name) => [`bin/${name}`, ''])));
    expect((await plan.defaultProcesses(built))['web']).toBe(web);
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

  it('runs the program of the variable, or of the module without its major version, and names those that there are', async () => {
    const files = { 'go.mod': 'module example.com/shop/v2\n', 'cmd/alpha/main.go': '', 'cmd/beta/main.go': '' };
    const built = await openSource({ 'bin/alpha': program, 'bin/shop': program });
    expect(await (await planFor(files)).defaultProcesses(built)).toEqual({ web: 'bin/shop' });
    expect(await (await planFor(files, { RAILPACK_GO_BIN: 'alpha' })).defaultProcesses(built)).toEqual({ web: 'bin/alpha' });
    expect((await planFor(files)).processHint).toContain('several programs (alpha, beta)');
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

describe('the builders of an app', () => {
  const node = (scripts: object): string => JSON.stringify({ scripts });

  it.each<[string, Record<string, string>, string]>([
    [
      'Django and its assets',
      { 'manage.py': '', 'requirements.txt': '', 'package.json': node({ build: 'x', start: 'y' }) },
      'node python',
    ],
    ['Go and its assets', { 'go.mod': '', 'package.json': node({ build: 'x' }) }, 'node go'],
    ['Python with tools of Node.js', { 'requirements.txt': '', 'package.json': node({ lint: 'x' }) }, 'python'],
    ['Node.js that uses Python', { 'requirements.txt': '', 'package.json': node({ start: 'node .' }) }, 'python node'],
    ['Node.js with a script in Python', { 'main.py': '', 'package.json': node({ start: 'node .' }) }, 'node'],
    ['Node.js with main.py and no start', { 'main.py': '', 'package.json': '{}', 'index.js': '' }, 'node'],
    ['Java', { 'pom.xml': '' }, 'java'],
    ['Deno', { 'deno.jsonc': '' }, 'deno'],
    ['C++', { 'CMakeLists.txt': '' }, 'cpp'],
    ['a site', { 'index.html': '' }, 'static'],
    ['a site in a directory', { Staticfile: 'root: site' }, 'static'],
    ['a site as Heroku has it', { 'static.json': '{"root": "site/"}', 'site/index.html': '' }, 'static'],
    ['a page with scripts', { 'index.html': '', 'main.js': '', 'app.ts': '' }, 'static'],
    ['a server without a manifest', { 'index.html': '', 'server.js': '' }, 'node'],
    ['a Python app with a script of its pages', { 'app.py': '', 'main.js': '' }, 'python'],
    ['a PHP app below', { 'htdocs/index.php': '' }, 'php'],
    ['a script', { 'start.sh': '' }, 'shell'],
    ['a Procfile alone', { Procfile: 'web: ./x', 'start.sh': '' }, 'shell'],
    ['a Procfile and nothing else', { Procfile: 'web: ./x' }, 'procfile'],
    ['a Procfile beside an index.html', { Procfile: 'web: ./x', 'index.html': '' }, 'procfile'],
  ])('for %s are those that build it, the last one starts it', async (_, files, names) => {
    const { main, before } = await chooseBuilders(await openSource(files));
    expect([...before, main].map(({ builder }) => builder.name).join(' ')).toBe(names);
  });

  it('is the one that railpack.json names', async () => {
    const source = await openSource({ 'package.json': '{}', 'start.sh': '', 'railpack.json': '{"provider": "shell"}' });
    const { builder } = await readOverrides(source, {});
    expect((await chooseBuilders(source, builder)).main.builder.name).toBe('shell');
  });

  it('see the values of all, those of the starting one first', async () => {
    const plans = await Promise.all([planFor({ 'package.json': node({ start: 'x' }) }), planFor({ 'requirements.txt': '' })]);
    const combined = combinePlans(plans);
    expect(combined.path.slice(0, 1)).toEqual(['/app/.venv/bin']);
    expect(combined.path).toContain('/app/node_modules/.bin');
    expect(combined.runtimeEnv).toMatchObject({ NODE_ENV: 'production', VIRTUAL_ENV: '/app/.venv' });
  });
});

describe("an app's own commands", () => {
  it('replace the steps of the builder, follow them, and start the app', async () => {
    const plan = await planFor({ 'requirements.txt': 'six' });
    const variables = { RAILPACK_INSTALL_CMD: 'make deps', RAILPACK_BUILD_CMD: 'make', RAILPACK_START_CMD: './run' };
    const changed = applyOverrides(plan, await readOverrides(await openSource({}), variables));
    expect(stepsOf(changed)).toEqual(['/bin/sh -c make deps', '/bin/sh -c make']);
    expect(await changed.defaultProcesses(await openSource({}))).toEqual({ web: './run' });
    expect(stepsOf(applyOverrides(plan, await readOverrides(await openSource({}), {})))).toEqual(stepsOf(plan));
  });

  it('are read of railpack.json, where "..." keeps what the builder does', async () => {
    const file = { steps: { build: { commands: ['...', 'make'] } }, deploy: { startCommand: './run', aptPackages: ['curl'] } };
    const overrides = await readOverrides(await openSource({ 'railpack.json': JSON.stringify(file) }), {});
    expect(overrides).toMatchObject({ build: 'make', start: './run', systemPackages: ['curl'] });
    expect(overrides.install).toBeUndefined();
    const node = await planFor({ 'package.json': '{"scripts":{"build":"x","start":"y"}}' });
    expect(stepsOf(applyOverrides(node, overrides))).toEqual(['npm run build', '/bin/sh -c make']);
    expect(stepsOf(applyOverrides(node, { ...overrides, keepsBuild: false }))).toEqual(['/bin/sh -c make']);
  });

  it.each<[Record<string, string>]>([
    [
      {
        'nixpacks.toml':
          '[phases.setup]\naptPkgs = ["jq"]\n[phases.install]\ncmds = ["a", "b"]\n[phases.build]\ncmds = ["make"]\n[start]\ncmd = "./run"\n',
      },
    ],
    [
      {
        'railway.json': '{"build": {"buildCommand": "make"}, "deploy": {"startCommand": "./run"}}',
        'railpack.json': '{"steps": {"install": {"commands": ["a", {"cmd": "b"}]}}}',
        Aptfile: '# tools\njq\n:repo:deb http://x.example/ y main\n',
      },
    ],
  ])('are read of %j', async (files) => {
    expect(await readOverrides(await openSource(files), {})).toMatchObject({
      install: 'a && b',
      build: 'make',
      keepsBuild: false,
      start: './run',
      systemPackages: ['jq'],
    });
  });

  it('may ask for packages of Debian, which come in place of the system that the app would see', async () => {
    const source = await openSource({ 'index.html': '', Aptfile: 'jq\n' });
    const overrides = await readOverrides(source, {});
    const plan = await planApp(source, await chooseBuilders(source), overrides, plainContext);
    expect(plan.notes.at(-1)).toBe('Installing packages of Debian (bookworm): jq');
    expect(plan.combined.toolchain.at(-1)).toMatchObject({ name: 'debian-system' });
    expect(plan.combined.path).toContain('/usr/games');
  });

  it('are built without packages of Debian that only dependencies may need, if they cannot be had', async () => {
    const source = await openSource({ 'requirements.txt': 'psycopg2' });
    const findSystem = () => Promise.reject(new BuildFailure('Debian cannot be reached.'));
    const context = { ...plainContext, toolchains: { ...toolchains, findSystem } };
    const choice = await chooseBuilders(source);
    const overrides = await readOverrides(source, {});
    const { notes } = await planApp(source, choice, overrides, context);
    expect(notes.at(-1)).toBe('Without libpq-dev, which dependencies of the app may need: Debian cannot be reached.');
    await expect(planApp(source, choice, { ...overrides, systemPackages: ['jq'] }, context)).rejects.toThrow('cannot be reached');
  });

  it('name packages in a variable, with or without a version', async () => {
    const overrides = await readOverrides(await openSource({}), { RAILPACK_PACKAGES: 'go@1.25 pipx:httpie python' });
    expect(overrides.packages).toEqual({ go: '1.25', 'pipx:httpie': 'latest', python: 'latest' });
  });

  it('are refused with the fault of railpack.json', async () => {
    await expect(readOverrides(await openSource({ 'railpack.json': '{"steps": 7}' }), {})).rejects.toThrow(
      /^railpack\.json is not valid: steps/,
    );
    await expect(readOverrides(await openSource({ 'railpack.json': '{' }), {})).rejects.toThrow(/^railpack\.json is not valid: /);
  });
});

describe('the plan of an app in another language', () => {
  it.each<[string, Record<string, string>, string[]]>([
    ['Java with Maven', { 'pom.xml': '' }, ['mvn --batch-mode --no-transfer-progress -DskipTests package']],
    [
      'Java with a wrapper',
      { 'pom.xml': '', mvnw: '' },
      ['chmod +x ./mvnw', './mvnw --batch-mode --no-transfer-progress -DskipTests package'],
    ],
    [
      'Java with Gradle',
      { 'build.gradle': '', gradlew: '' },
      ['chmod +x ./gradlew', './gradlew --no-daemon --console=plain build -x test -x check'],
    ],
    ['Deno', { 'deno.json': '{"tasks":{"build":"x"}}', 'main.ts': '' }, ['deno cache main.ts', 'deno task build']],
    [
      'C++ with Meson',
      { 'meson.build': '' },
      ['uvx --with ninja meson setup build --buildtype=release', 'uvx --with ninja meson compile -C build'],
    ],
    ['a shell script', { 'start.sh': '' }, []],
  ])('%s', async (_, files, steps) => {
    expect(stepsOf(await planFor(files))).toEqual(steps);
  });

  it.each<[Record<string, string>, Record<string, string>, string | undefined]>([
    [
      { 'pom.xml': '' },
      { 'target/app-1.0.jar': '', 'target/app-1.0-sources.jar': '' },
      'java $JAVA_OPTS -Dserver.port=$PORT -Dmicronaut.server.port=$PORT -jar target/app-1.0.jar',
    ],
    [{ 'pom.xml': '' }, {}, undefined],
    [
      { 'pom.xml': '' },
      { 'target/app.war': '' },
      'java $JAVA_OPTS -Dserver.port=$PORT -Dmicronaut.server.port=$PORT -jar target/app.war',
    ],
    [
      { 'pom.xml': '<modules>\n<module>core</module>\n<module>web</module>\n</modules>' },
      {
        'core/target/core.jar': '',
        'web/target/web.jar': '',
        'web/pom.xml': '<artifactId>spring-boot-maven-plugin</artifactId>',
      },
      'java $JAVA_OPTS -Dserver.port=$PORT -Dmicronaut.server.port=$PORT -jar web/target/web.jar',
    ],
    [
      { 'build.gradle': '', 'settings.gradle': "include ':app'" },
      { 'app/build/libs/app.jar': '' },
      'java $JAVA_OPTS -Dserver.port=$PORT -Dmicronaut.server.port=$PORT -jar app/build/libs/app.jar',
    ],
    [{ 'main.ts': '' }, {}, 'DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT deno run --allow-all main.ts'],
    [{ 'server.js': '' }, { 'server.js': '' }, 'node server.js'],
    [{ 'app.sh': '#!/bin/sh\n' }, {}, 'sh app.sh'],
    [
      { 'go.mod': 'module example.com/shop\n', 'cmd/alpha/main.go': '', 'cmd/beta/main.go': '' },
      { 'bin/beta': '\x7fELF', 'bin/alpha': '\x7fELF' },
      'bin/alpha',
    ],
    [{ 'deno.json': '{}', 'main.ts': '' }, {}, 'DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT deno run --allow-all main.ts'],
    [{ 'deno.json': '{"tasks":{"start":"x"}}' }, {}, 'DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT deno task start'],
    [{ 'CMakeLists.txt': 'project(shop LANGUAGES CXX)' }, { 'build/shop': '\x7fELF', 'build/tool': '\x7fELF' }, 'build/shop'],
    [{ 'start.sh': '#!/usr/bin/env bash\n' }, {}, 'bash start.sh'],
    [{ 'start.sh': 'echo' }, {}, 'sh start.sh'],
  ])('of %j starts what the build left, %j', async (files, built, web) => {
    expect((await (await planFor(files)).defaultProcesses(await openSource(built)))['web']).toBe(web);
  });

  it.each<[Record<string, string>, string]>([
    [{ 'system.properties': 'java.runtime.version=17\n' }, 'system.properties asks for 17'],
    [{ '.java-version': '21' }, '.java-version asks for 21'],
    [{ 'pom.xml': '<maven.compiler.release>11</maven.compiler.release>' }, 'pom.xml asks for >=11'],
    [{ 'railpack.json': '{"packages":{"java":"zulu-8.86"}}' }, 'railpack.json asks for zulu-8.86'],
  ])('asks for the Java of %j', async (files, note) => {
    expect((await planFor({ 'pom.xml': '', ...files })).notes[0]).toContain(note);
  });
});

describe('tools that an app asks for beside its language', () => {
  const pinsOf = async (files: Record<string, string>) => {
    const source = await openSource(files);
    return readVersionPins(source, {}, await readAppOverrides(source, {}));
  };

  it('are on its PATH if a list of tools names them, and not if the file of a version manager does', async () => {
    const mise = await pinsOf({ 'mise.toml': '[tools]\ngo = "1.25"\nnode = "24"\n', '.python-version': '3.11' });
    const { notes, path } = await findPinnedTools(toolchains, mise, new Set(['node']));
    expect(notes).toEqual(['Using go 1.25 (mise.toml asks for 1.25)']);
    expect(path).toEqual(['/opt/tool/bin']);
    const railpack = await pinsOf({ 'railpack.json': '{"packages":{"python":"latest","jq":"1"}}' });
    expect((await findPinnedTools(toolchains, railpack, new Set())).notes).toEqual([
      'Using python 1.2.3 (railpack.json asks for latest)',
      'Not installed: jq (railpack.json). This platform does not have this tool.',
    ]);
  });

  it('are said to be missing if they cannot be had', async () => {
    const failing = { ...toolchains, findGo: () => Promise.reject(new BuildFailure('No Go compiler on this platform.')) };
    const pins = await pinsOf({ '.tool-versions': 'golang 1.25' });
    expect(await findPinnedTools(failing, pins, new Set())).toEqual({
      notes: ['Without go: No Go compiler on this platform.'],
      path: [],
      toolchain: [],
    });
  });
});
