import type { VersionRequest } from '../../toolchains/toolchain.ts';
import type { BuildStep } from '../plans/build-plan.ts';
import type { Builder } from '../plans/builder.ts';
import { describeVersion } from '../plans/describe-version.ts';
import type { SourceTree } from '../plans/source-tree.ts';
import { treeKey } from '../plans/tree-key.ts';
import type { VersionPins } from '../plans/version-pins.ts';

/** Where the gems of every Ruby app are, relative to the app. */
const gems = 'vendor/bundle';

export const rubyBuilder: Builder = {
  name: 'ruby',
  looksFor: 'Gemfile (Ruby)',
  replacesSystem: true,
  async detect(source) {
    return (await source.hasFile('Gemfile')) ? { what: 'Ruby app', why: 'Gemfile' } : undefined;
  },
  async plan(source, context) {
    const { toolchains, env, cache } = context;
    const project = await readRubyProject(source);
    const request = await findRubyRequest(source, project, context.pins);
    const ruby = await toolchains.findLanguage('ruby', request);
    // Gems that run JavaScript look for a Node.js.
    const node = project.uses('execjs') ? await toolchains.findNode() : undefined;
    const rails = project.uses('railties');
    const directory = `/app/${gems}/ruby/${ruby.version.split('.').slice(0, 2).join('.')}.0`;
    const settings = {
      BUNDLE_PATH: `/app/${gems}`,
      BUNDLE_WITHOUT: 'development:test',
      BUNDLE_APP_CONFIG: '/app/.bundle',
      RACK_ENV: 'production',
      ...(rails ? { RAILS_ENV: 'production', RAILS_LOG_TO_STDOUT: 'enabled', RAILS_SERVE_STATIC_FILES: 'enabled' } : {}),
      // For programs of gems that are started without Bundler. The last colon stands for the directories of Ruby itself.
      GEM_PATH: `${directory}:`,
    };
    // The allocator of the C library keeps far more memory than Ruby uses.
    const ofDebian = ruby.mounts.some(({ kind }) => kind === 'stored');
    const allocator: Readonly<Record<string, string>> = ofDebian ? { LD_PRELOAD: 'libjemalloc.so.2' } : { MALLOC_ARENA_MAX: '2' };
    return {
      notes: [
        describeVersion('Ruby', ruby.version, request),
        ...(project.lock === undefined || project.hasPlatform
          ? []
          : [`Gemfile.lock lacks the platform of this build. Add it: bundle lock --add-platform ${platform}`]),
        ...(rails && !hasSecret(env)
          ? [
              'Rails needs a secret to start. If the app has none of its own: paas config:set SECRET_KEY_BASE=$(openssl rand -hex 64)',
            ]
          : []),
      ],
      steps: [...installSteps(project, cache), ...(rails ? await railsSteps(source) : [])],
      env: {
        ...settings,
        BUNDLE_JOBS: '4',
        BUNDLE_USER_HOME: '/cache/bundler',
        BUNDLE_GLOBAL_GEM_CACHE: 'true',
        ...(project.lock !== undefined && project.hasPlatform ? { BUNDLE_FROZEN: 'true' } : {}),
        ...(await scriptSettings(source)),
        // Assets need no secret, but Rails starts to compile them.
        SECRET_KEY_BASE_DUMMY: '1',
        ...(rails && !hasSecret(env) ? { SECRET_KEY_BASE: 'only-while-assets-are-compiled' } : {}),
      },
      path: ['/app/bin', `${directory}/bin`, ...ruby.path, ...(node?.path ?? [])],
      toolchain: [...ruby.mounts, ...(node?.mounts ?? [])],
      cacheDirectories: ['bundler'],
      ...(project.lock === undefined
        ? {}
        : { tree: { paths: [gems], key: treeKey(ruby.version, project.gemfile, project.lock) } }),
      keptDirectories: rails ? ['tmp/cache'] : [],
      runtimeEnv: { ...settings, ...allocator },
      defaultProcesses: (built) => findProcesses(built, project),
      processHint:
        'There is no config.ru, bin/rails or app.rb at the top of the source. Add a Procfile with a line as: web: bundle exec ruby server.rb',
    };
  },
};

/** As Bundler names the platform that builds run on. */
const platform = `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux`;

interface RubyProject {
  readonly gemfile: string;
  readonly lock: string | undefined;
  /** Whether the lockfile can be installed here without being changed. */
  readonly hasPlatform: boolean;
  /** Whether the lockfile, or the Gemfile where there is none, names a gem or a section. */
  uses(name: string): boolean;
}

const locksPlatform = /^PLATFORMS\n(?:[ \t]{1,9}\S{1,60}\n){0,20}?[ \t]{1,9}(?:ruby|\S{1,20}-linux(?:-gnu)?)\n/m;

async function readRubyProject(source: SourceTree): Promise<RubyProject> {
  const gemfile = (await source.readText('Gemfile')) ?? '';
  const lock = await source.readText('Gemfile.lock');
  const locked = new Set((lock ?? '').split('\n').map((line) => line.trim().split(/[\s(!]/, 1)[0]));
  const named = new Set([...gemfile.matchAll(/^[ \t]*gem[ \t(]+["']([\w.-]{1,80})["']/gm)].map(([, name]) => name));
  if (named.has('rails')) named.add('railties');
  const hasPlatform = locksPlatform.test(`${lock}\n`);
  return { gemfile, lock, hasPlatform, uses: (name) => (lock === undefined ? named : locked).has(name) };
}

/** Pins come first (`.ruby-version` is one), then the Gemfile, then what the lockfile was made with. */
async function findRubyRequest(
  source: SourceTree,
  { gemfile, lock }: RubyProject,
  pins: VersionPins,
): Promise<VersionRequest | undefined> {
  const pinned = pins.get('ruby');
  if (pinned !== undefined) return pinned;
  const line = /^[ \t]*ruby[ \t(]+([^\n#]{1,120})/m.exec(gemfile)?.[1];
  // Also arguments such as `engine: "jruby"` and `file: ".ruby-version"`.
  const versions = (line ?? '').split(',').flatMap((word) => /^["']([^"']{1,60})["']\)?$/.exec(word.trim())?.[1] ?? []);
  if (versions.length > 0) return { version: versions.join(', '), source: '"ruby" in Gemfile' };
  const locked = /^RUBY VERSION\n[ \t]+ruby (\d+\.\d+\.\d+)/m.exec(lock ?? '')?.[1];
  return locked === undefined ? undefined : { version: locked, source: 'Gemfile.lock' };
}

function installSteps({ lock, uses, hasPlatform }: RubyProject, cache: 'cold' | 'warm'): readonly BuildStep[] {
  const title = `bundle install, cache ${cache}`;
  const argv = ['bundle', 'install'];
  if (lock === undefined) return [{ title, argv }];
  const reused = `${title}, gems reused`;
  // The lockfile says all of the gems but of those that are directories of the app. Bundler adds a platform to it each time.
  const whole = uses('PATH') || !hasPlatform ? {} : { skipIf: async () => reused };
  return [
    { title: reused, argv, when: 'if-restored', ...whole },
    { title, argv, when: 'unless-restored', savesTree: true },
  ];
}

function hasSecret(env: Readonly<Record<string, string>>): boolean {
  return env['SECRET_KEY_BASE'] !== undefined || env['RAILS_MASTER_KEY'] !== undefined;
}

/** Node.js has built already what the script "build" makes, which Rails would build again. */
async function scriptSettings(source: SourceTree): Promise<Readonly<Record<string, string>>> {
  return /"build"\s*:/.test((await source.readText('package.json')) ?? '') ? { SKIP_YARN_INSTALL: '1', SKIP_JS_BUILD: '1' } : {};
}

async function railsSteps(source: SourceTree): Promise<readonly BuildStep[]> {
  const compiled = await source.list('public/assets');
  if (compiled.length > 0 || (await source.list('app/assets')).length === 0) return [];
  return [{ title: 'rake assets:precompile', argv: ['bundle', 'exec', 'rake', 'assets:precompile'] }];
}

async function findProcesses(built: SourceTree, project: RubyProject): Promise<Readonly<Record<string, string>>> {
  if (project.uses('railties') && (await built.hasFile('config/environment.rb')))
    return {
      web: 'bundle exec rails server -b 0.0.0.0 -p $PORT -e $RAILS_ENV',
      ...(project.uses('sidekiq') ? { worker: 'bundle exec sidekiq' } : {}),
    };
  if (await built.hasFile('config.ru'))
    return {
      web: project.uses('puma') ? 'bundle exec puma -b tcp://0.0.0.0:$PORT' : 'bundle exec rackup config.ru -o 0.0.0.0 -p $PORT',
    };
  for (const file of ['app.rb', 'server.rb', 'main.rb', 'web.rb'])
    if (await built.hasFile(file)) return { web: `bundle exec ruby ${file}` };
  return {};
}
