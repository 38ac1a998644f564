import { describe, expect, it } from 'vitest';
import { openPlanFixture, plainContext, stepsOf, toolchains } from '#test/support/builds/plan-fixture.ts';
import { chooseBuilders } from './choose-builders.ts';
import { planApp } from './plan-app.ts';

const { openSource, planFor } = openPlanFixture();

const context = plainContext;

const lockOf = (gems: readonly string[]): string =>
  `GEM\n  remote: https://gems.example/\n  specs:\n${gems.map((gem) => `    ${gem} (1.0)\n`).join('')}\nPLATFORMS\n  arm64-darwin-22\n  x86_64-linux\n`;

describe('the plan of a Ruby app', () => {
  it.each<[Record<string, string>, string]>([
    [{ '.ruby-version': '3.1.2\n', Gemfile: 'ruby "3.3.0"' }, '.ruby-version asks for 3.1.2'],
    [{ Gemfile: 'ruby "~> 3.1", ">= 3.1.2"\n' }, '"ruby" in Gemfile asks for ~> 3.1, >= 3.1.2'],
    [{ Gemfile: "ruby '3.1.2', engine: 'ruby'\n" }, '"ruby" in Gemfile asks for 3.1.2'],
    [{ Gemfile: '', 'Gemfile.lock': 'RUBY VERSION\n   ruby 3.1.2p20\n' }, 'Gemfile.lock asks for 3.1.2'],
    [{ Gemfile: 'ruby file: ".ruby-version"\n', '.tool-versions': 'ruby 3.1.2' }, '.tool-versions asks for 3.1.2'],
  ])('says which Ruby %j asks for', async (files, note) => {
    expect((await planFor(files)).notes[0]).toContain(note);
  });

  it('installs from the lockfile, and reuses the gems while it is the same', async () => {
    const plan = await planFor({ Gemfile: '', 'Gemfile.lock': lockOf(['rack']) });
    expect(stepsOf(plan)).toEqual(['if-restored: bundle install', 'unless-restored: bundle install']);
    expect(plan.steps.map(({ skipIf }) => skipIf !== undefined)).toEqual([true, false]);
    expect(plan.env['BUNDLE_FROZEN']).toBe('true');
    expect(plan.tree?.paths).toEqual(['vendor/bundle']);
    expect((await planFor({ Gemfile: '' })).env['BUNDLE_FROZEN']).toBeUndefined();
  });

  it('with a lockfile that was made on a Mac installs all the same, and says what to add', async () => {
    const plan = await planFor({ Gemfile: '', 'Gemfile.lock': 'PLATFORMS\n  arm64-darwin-22\n\nDEPENDENCIES\n  linux\n' });
    expect(plan.env['BUNDLE_FROZEN']).toBeUndefined();
    expect(plan.notes[1]).toMatch(
      /^Gemfile\.lock lacks the platform of this build\. Add it: bundle lock --add-platform \w+-linux$/,
    );
    expect(plan.steps.map(({ skipIf }) => skipIf !== undefined)).toEqual([false, false]);
  });

  it('compiles the assets of Rails, and says what Rails needs to start', async () => {
    const rails = { Gemfile: '', 'Gemfile.lock': lockOf(['railties']), 'app/assets/a.css': '', 'config/environment.rb': '' };
    const plan = await planFor(rails);
    expect(stepsOf(plan).at(-1)).toBe('bundle exec rake assets:precompile');
    expect(plan.notes.join()).toContain('paas config:set SECRET_KEY_BASE=');
    expect(plan.runtimeEnv).toMatchObject({ RAILS_ENV: 'production', RAILS_LOG_TO_STDOUT: 'enabled' });
    expect(plan.runtimeEnv['SECRET_KEY_BASE']).toBeUndefined();
    expect(await plan.defaultProcesses(await openSource(rails))).toEqual({
      web: 'bundle exec rails server -b 0.0.0.0 -p $PORT -e $RAILS_ENV',
    });
    expect((await planFor(rails, { SECRET_KEY_BASE: 'x' })).notes).toHaveLength(1);
    expect(stepsOf(await planFor({ ...rails, 'public/assets/a-1.css': '' })).at(-1)).not.toContain('precompile');
  });

  it.each<[string, Record<string, string>, string | undefined]>([
    ['config.ru with puma', { 'config.ru': '', 'Gemfile.lock': lockOf(['puma']) }, 'bundle exec puma -b tcp://0.0.0.0:$PORT'],
    ['config.ru', { 'config.ru': '' }, 'bundle exec rackup config.ru -o 0.0.0.0 -p $PORT'],
    ['app.rb', { 'app.rb': '' }, 'bundle exec ruby app.rb'],
    ['nothing', {}, undefined],
  ])('starts %s', async (_, files, web) => {
    const plan = await planFor({ Gemfile: '', ...files });
    expect((await plan.defaultProcesses(await openSource({ Gemfile: '', ...files })))['web']).toBe(web);
  });
});

describe('the plan of a PHP app', () => {
  it.each<[string, Record<string, string>, string]>([
    ['its top', { 'index.php': '' }, 'serve-php .'],
    ['public', { 'composer.json': '{}', 'public/index.php': '' }, 'serve-php public'],
    ['public of Laravel', { 'composer.json': '{}', 'public/index.php': '', artisan: '' }, 'serve-php --laravel public'],
    ['web', { 'composer.json': '{}', 'web/index.php': '' }, 'serve-php web'],
  ])('serves %s', async (_, files, web) => {
    const plan = await planFor(files);
    expect(await plan.defaultProcesses(await openSource(files))).toEqual({ web });
  });

  it('serves the directory that a variable names, if it is one of the app', async () => {
    const files = { 'index.php': '' };
    const plan = await planFor(files, { RAILPACK_PHP_ROOT_DIR: '/app/site' });
    expect(await plan.defaultProcesses(await openSource(files))).toEqual({ web: 'serve-php site' });
    await expect(planFor(files, { RAILPACK_PHP_ROOT_DIR: '../etc' })).rejects.toThrow(/no directory of the app/);
    await expect(planFor(files, { RAILPACK_PHP_ROOT_DIR: 'a; id' })).rejects.toThrow(/no directory of the app/);
  });

  it('installs packages, but asks no registry where there are none', async () => {
    const install = 'composer install --no-dev --prefer-dist --optimize-autoloader --no-progress';
    const packages = { 'composer.json': '{"require": {"php": "^8.2", "a/b": "^1.0"}}', 'composer.lock': '{}' };
    const plan = await planFor(packages);
    expect(stepsOf(plan)).toEqual([`if-restored: ${install}`, `unless-restored: ${install}`]);
    expect(plan.notes[0]).toBe('Using PHP ^8.2 ("php" in composer.json asks for ^8.2)');
    expect(stepsOf(await planFor({ 'composer.json': '{"require": {"php": "^8.2", "ext-intl": "*"}}' }))).toEqual([]);
  });

  it('is refused if composer.json is not valid', async () => {
    await expect(planFor({ 'composer.json': '{' })).rejects.toThrow(/^composer\.json is not valid: /);
    await expect(planFor({ 'composer.json': '{"require": []}' })).rejects.toThrow(/^composer\.json is not valid: require /);
  });

  it('has its packages before Node.js builds the assets, which import some of them', async () => {
    const files = { 'composer.json': '{}', artisan: '', 'package.json': '{"scripts": {"build": "vite build"}}' };
    const { main, before, after } = await chooseBuilders(await openSource(files));
    expect([main.builder.name, before, after?.map(({ builder }) => builder.name)]).toEqual(['php', [], ['node']]);
  });

  it('installs them first also in the plan of the whole app, which PHP starts', async () => {
    const packages = '{"require": {"a/b": "^1.0"}}';
    const source = await openSource({ 'composer.json': packages, 'package.json': '{"scripts": {"build": "vite build"}}' });
    const plan = await planApp(source, await chooseBuilders(source), { packages: {}, systemPackages: [] }, context);
    const steps = plan.running.flatMap(stepsOf);
    expect(steps.findIndex((step) => step.includes('composer install'))).toBe(0);
    expect(steps.at(-1)).toContain('npm run build');
    expect(await plan.main.defaultProcesses(source)).toEqual({ web: 'serve-php .' });
  });

  it('does not see tools of the host in /usr, which Debian takes the place of, and says so', async () => {
    const source = await openSource({ 'index.php': '' });
    const python = { version: '3.11.2', path: ['/usr/bin'], mounts: [], executable: '/usr/bin/python3', pip: true };
    const host = { ...toolchains, findPython: async () => python };
    const pins = new Map([['python', { version: '3.11', source: '.tool-versions' }]]);
    const given = { ...context, toolchains: host, pins };
    const plan = await planApp(source, await chooseBuilders(source), { packages: {}, systemPackages: [] }, given);
    expect(plan.notes.at(-1)).toBe(
      "Without python: Python of this platform is not seen beside a language that comes from Debian's packages.",
    );
    expect(plan.combined.path).not.toContain('/usr/bin');
  });
});

describe('the plan of an Elixir app', () => {
  const mix =
    'def project do [\n  app: :hello,\n  elixir: "~> 1.14",\n  deps: deps()\n] end\ndefp deps, do: [{:phoenix, "~> 1.7"}]\n';

  it('gets and compiles dependencies once for each lockfile, and makes a release', async () => {
    const plan = await planFor({ 'mix.exs': `${mix}"assets.deploy": ["tailwind"]`, 'mix.lock': '%{}' });
    expect(plan.notes[0]).toBe('Using Elixir ~> 1.14 ("elixir" in mix.exs asks for ~> 1.14)');
    expect(plan.notes[1]).toContain('paas config:set SECRET_KEY_BASE=');
    expect(stepsOf(plan)).toEqual([
      'unless-restored: mix local.hex --force --if-missing',
      'unless-restored: mix local.rebar --force --if-missing',
      'if-restored: true',
      'unless-restored: mix deps.get --only prod',
      'unless-restored: mix deps.compile',
      'mix compile',
      'mix assets.deploy',
      'mix release --overwrite',
    ]);
    const built = await openSource({ '_build/prod/rel/hello/bin/hello': '' });
    expect(await plan.defaultProcesses(built)).toEqual({ web: '_build/prod/rel/hello/bin/hello start' });
    expect(plan.runtimeEnv).toMatchObject({ PHX_SERVER: 'true' });
  });

  it('without dependencies asks no registry, and one of an umbrella makes no release', async () => {
    expect(stepsOf(await planFor({ 'mix.exs': 'apps_path: "apps", deps: []' }))).toEqual(['mix compile']);
  });
});

describe('the plan of a .NET app', () => {
  it.each<[Record<string, string>, string]>([
    [{ 'global.json': '{"sdk": {"version": "8.0.404"}}' }, 'global.json asks for 8.0.404 - 8.0.499'],
    [{}, 'the target framework asks for >=9'],
    [{ '.tool-versions': 'dotnet 9.0.100' }, '.tool-versions asks for 9.0.100'],
  ])('says which SDK %j asks for', async (files, note) => {
    const plan = await planFor({ 'a-b.csproj': '<TargetFramework>net9.0</TargetFramework>', ...files });
    expect(plan.notes[0]).toContain(note);
    expect(stepsOf(plan)).toEqual(['dotnet publish a-b.csproj --configuration Release --output out']);
    const web = 'ASPNETCORE_URLS=http://0.0.0.0:$PORT dotnet out/a-b.dll';
    expect(await plan.defaultProcesses(await openSource({ 'out/a-b.dll': '' }))).toEqual({ web });
  });
});

describe('the plan of a Gleam app', () => {
  it('exports what runs on Erlang', async () => {
    const plan = await planFor({ 'gleam.toml': 'name = "a"\ngleam = ">= 1.2.0"\n' });
    expect(plan.notes[0]).toContain('"gleam" in gleam.toml asks for >= 1.2.0');
    expect(stepsOf(plan)).toEqual(['gleam export erlang-shipment']);
  });
});
