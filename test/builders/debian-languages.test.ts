/**
 * Real builds of languages whose toolchains are made of Debian's packages. Each is installed once for this file, which takes a minute; with
 * PAAS_TEST_TOOLCHAINS, once for all runs. The apps need no package registry.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { openRealBuilds, type RealBuilds } from '#test/support/builds/real-builds.ts';

let real: RealBuilds;
beforeAll(async () => {
  real = await openRealBuilds();
});
afterAll(() => real.stop());

describe('a Ruby app', () => {
  const server = `require "socket"
require "word"
server = TCPServer.new("127.0.0.1", ENV.fetch("PORT"))
loop do
  client = server.accept
  client.readpartial(4096)
  body = "#{Word::WORD} #{RUBY_VERSION} #{ENV["RACK_ENV"]}"
  client.write("HTTP/1.1 200 OK\\r\\ncontent-length: #{body.size}\\r\\nconnection: close\\r\\n\\r\\n#{body}")
  client.close
end
`;
  const files = {
    Gemfile: 'source "https://rubygems.org"\nruby "~> 3.1.0"\ngem "word", path: "word"\n',
    'Gemfile.lock':
      'PATH\n  remote: word\n  specs:\n    word (1.0)\n\nGEM\n  remote: https://rubygems.org/\n  specs:\n\nPLATFORMS\n  ruby\n\nDEPENDENCIES\n  word!\n\nRUBY VERSION\n   ruby 3.1.2p20\n\nBUNDLED WITH\n   2.3.15\n',
    'word/word.gemspec':
      'Gem::Specification.new do |s|\n  s.name = "word"\n  s.version = "1.0"\n  s.summary = "A word"\n  s.authors = ["a"]\n  s.files = ["lib/word.rb"]\nend\n',
    'word/lib/word.rb': 'require "word_native"\n',
    'word/ext/extconf.rb': 'require "mkmf"\ncreate_makefile("word_native")\n',
    'word/ext/word.c':
      '#include <ruby.h>\nvoid Init_word_native(void) { rb_define_const(rb_define_module("Word"), "WORD", rb_str_new_cstr("native")); }\n',
    'app.rb': server,
  };
  // Bundler compiles extensions of published gems alone.
  const RAILPACK_BUILD_CMD = 'cd word/ext && ruby extconf.rb && make && mv word_native.so ../lib';

  it('runs on the Ruby that its Gemfile asks for, with an extension in C', async () => {
    const appId = newUuid<AppId>();
    const cold = await real.succeed(appId, files, { RAILPACK_BUILD_CMD });
    expect(cold.log).toContain('-----> Ruby app detected (Gemfile)');
    expect(cold.log).toMatch(/Using Ruby 3\.1\.\d+ \("ruby" in Gemfile asks for ~> 3\.1\.0\)/);
    expect(cold.log).toContain('bundle install, cache cold');
    expect(cold.processes).toEqual({ web: 'bundle exec ruby app.rb' });
    expect(await (await real.visit(appId, cold.imageUrl)).text()).toMatch(/^native 3\.1\.\d+ production$/);
    expect((await real.succeed(appId, files, { RAILPACK_BUILD_CMD })).log).toContain('cache warm, gems reused');
  });

  it('that asks for a Ruby that nobody has is told which there are, before anything is installed', async () => {
    const { outcome, log } = await real.build(newUuid<AppId>(), { ...files, '.ruby-version': '3.2.1\n' });
    expect(outcome).toMatchObject({
      cause: expect.stringMatching(
        /^\.ruby-version asks for Ruby 3\.2\.1, and this platform has 2\.7\.\d+, 3\.1\.\d+, .*\. Ask for one of them, or let its operator install it: mise install ruby@3\.2\.1$/,
      ),
    });
    expect(log).not.toContain('bundle install');
  });

  it('with a lockfile that does not match fails with a cause that says so', async () => {
    const Gemfile = `${files.Gemfile}gem "rack"\n`;
    const { outcome } = await real.build(newUuid<AppId>(), { ...files, Gemfile });
    expect(outcome).toMatchObject({
      cause: 'Gemfile.lock does not match Gemfile. Run `bundle install` and commit Gemfile.lock.',
    });
  });
});

describe('a PHP app', () => {
  const index = `<?php
require __DIR__ . '/../vendor/autoload.php';
header('x-path: ' . $_SERVER['REQUEST_URI']);
echo App\\Word::WORD, ' ', PHP_VERSION, ' ', extension_loaded('pdo_pgsql') ? 'pgsql' : '', ' ', $_GET['a'] ?? '';
`;
  const files = {
    'composer.json': JSON.stringify({
      require: { php: '^8.2 <8.3', 'ext-pdo_pgsql': '*' },
      autoload: { 'psr-4': { 'App\\': 'src/' } },
    }),
    'src/Word.php': "<?php\nnamespace App;\nclass Word { const WORD = 'hello'; }\n",
    'public/index.php': index,
    'public/style.css': 'a{}',
    'public/.env': 'SECRET=1',
  };

  it('is served by nginx and php-fpm, from its public directory', async () => {
    const appId = newUuid<AppId>();
    const cold = await real.succeed(appId, files);
    expect(cold.log).toContain('-----> PHP app detected (composer.json)');
    expect(cold.log).toContain('composer install --no-dev, cache cold');
    expect(cold.processes).toEqual({ web: 'serve-php public' });
    const page = await real.visit(appId, cold.imageUrl, '/some/page?a=b');
    expect(await page.text()).toMatch(/^hello 8\.2\.\d+ pgsql b$/);
    expect(page.headers.get('x-path')).toBe('/some/page?a=b');
    expect((await real.visit(appId, cold.imageUrl, '/style.css')).headers.get('content-type')).toBe('text/css');
    expect((await real.visit(appId, cold.imageUrl, '/.env')).status).toBe(404);
    expect((await real.succeed(appId, files)).log).toContain('cache warm, vendor reused');
  });

  it('that is one file needs nothing else', async () => {
    const appId = newUuid<AppId>();
    const built = await real.succeed(appId, { 'index.php': '<?php echo "hello from php";', '.tool-versions': 'php 8.2\n' });
    expect(built.processes).toEqual({ web: 'serve-php .' });
    expect(await (await real.visit(appId, built.imageUrl)).text()).toBe('hello from php');
  });

  it('that asks for an extension that nobody has fails with a cause that says so', async () => {
    const require = { php: '8.2.*', 'ext-nonsense': '*' };
    const locked = { packages: [], 'packages-dev': [], platform: require, 'content-hash': 'a' };
    const { outcome } = await real.build(newUuid<AppId>(), {
      ...files,
      'composer.json': JSON.stringify({ require }),
      'composer.lock': JSON.stringify(locked),
    });
    expect(outcome).toMatchObject({
      cause: 'composer.json asks for the extension nonsense, which the PHP of this platform does not have.',
    });
  });
});

describe('an Elixir app', () => {
  const files = {
    'mix.exs': `defmodule Hello.MixProject do
  use Mix.Project
  def project, do: [
    app: :hello,
    version: "0.1.0",
    elixir: "~> 1.14.0",
    deps: []
  ]
  def application, do: [extra_applications: [:logger], mod: {Hello, []}]
end
`,
    'lib/hello.ex': `defmodule Hello do
  use Application
  def start(_type, _args), do: Task.start_link(fn -> listen(String.to_integer(System.fetch_env!("PORT"))) end)
  defp listen(port) do
    {:ok, listener} = :gen_tcp.listen(port, [:binary, active: false, reuseaddr: true])
    serve(listener)
  end
  defp serve(listener) do
    {:ok, client} = :gen_tcp.accept(listener)
    {:ok, _} = :gen_tcp.recv(client, 0)
    body = "elixir " <> System.version()
    :gen_tcp.send(client, ["HTTP/1.1 200 OK\\r\\ncontent-length: ", to_string(byte_size(body)), "\\r\\nconnection: close\\r\\n\\r\\n", body])
    :gen_tcp.close(client)
    serve(listener)
  end
end
`,
  };

  it('is a release that runs on the Elixir that mix.exs asks for', async () => {
    const appId = newUuid<AppId>();
    const built = await real.succeed(appId, files);
    expect(built.log).toContain('-----> Elixir app detected (mix.exs)');
    expect(built.processes).toEqual({ web: '_build/prod/rel/hello/bin/hello start' });
    expect(await (await real.visit(appId, built.imageUrl)).text()).toMatch(/^elixir 1\.14\./);
  });
});

describe('a .NET app', () => {
  it('is told what is missing, and who can install it', async () => {
    const project = '<Project Sdk="Microsoft.NET.Sdk.Web"><TargetFramework>net8.0</TargetFramework></Project>';
    const { outcome } = await real.build(newUuid<AppId>(), { 'hello.csproj': project, 'Program.cs': '' });
    expect(outcome).toMatchObject({ status: 'failed', cause: expect.stringMatching(/mise install dotnet@8$/) });
  });
});
