import { z } from 'zod';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { VersionRequest } from '../../toolchains/toolchain.ts';
import { partTargets } from '../../toolchains/toolchain-mounts.ts';
import type { BuildStep } from '../plans/build-plan.ts';
import type { Builder } from '../plans/builder.ts';
import { describeVersion } from '../plans/describe-version.ts';
import type { SourceTree } from '../plans/source-tree.ts';
import { treeKey } from '../plans/tree-key.ts';
import type { VersionPins } from '../plans/version-pins.ts';

const schema = z.looseObject({
  require: z.record(z.string(), z.string()).optional(),
  'require-dev': z.record(z.string(), z.string()).optional(),
});
type Manifest = z.infer<typeof schema>;

/** Names of the directory that visitors see. */
const webRoots = ['public', 'web', 'htdocs', 'www', 'public_html', 'webroot'] as const;

export const phpBuilder: Builder = {
  name: 'php',
  looksFor: 'composer.json or index.php (PHP)',
  replacesSystem: true,
  async detect(source) {
    for (const why of ['composer.json', 'index.php', ...webRoots.map((root) => `${root}/index.php`)])
      if (await source.hasFile(why)) return { what: 'PHP app', why };
    return undefined;
  },
  async plan(source, context) {
    const { toolchains, env, cache } = context;
    const [text, lock] = [await source.readText('composer.json'), await source.readText('composer.lock')];
    const manifest = parseManifest(text);
    const request = await findPhpRequest(source, manifest, context.pins);
    const php = await toolchains.findLanguage('php', request);
    const laravel = await source.hasFile('artisan');
    const root = await findRoot(source, env);
    const installs = text !== undefined && needsComposer(text, manifest, lock);
    return {
      notes: [
        describeVersion('PHP', php.version, request),
        `Serving the directory ${root} with nginx`,
        ...(laravel && env['APP_KEY'] === undefined
          ? ['Laravel needs a key to start. If the app has none: paas config:set APP_KEY=base64:$(openssl rand -base64 32)']
          : []),
      ],
      steps: installs ? installSteps(cache) : [],
      env: {
        COMPOSER_CACHE_DIR: '/cache/composer',
        COMPOSER_HOME: '/home/app/.composer',
        COMPOSER_NO_INTERACTION: '1',
        COMPOSER_NO_AUDIT: '1',
        // Composer breaks lines of errors, also within words.
        COLUMNS: '300',
      },
      path: [partTargets['php-server'], '/app/vendor/bin', ...php.path],
      toolchain: [...php.mounts, { kind: 'platform', name: 'php-server' }],
      cacheDirectories: installs ? ['composer'] : [],
      ...(installs ? { tree: { paths: ['vendor'], key: treeKey(php.version, text, lock) } } : {}),
      runtimeEnv: laravel ? { APP_ENV: 'production', LOG_CHANNEL: 'stderr' } : {},
      defaultProcesses: async () => ({ web: `serve-php ${laravel ? '--laravel ' : ''}${root}` }),
      processHint: '',
    };
  },
};

/** @throws BuildFailure if it is not valid */
function parseManifest(text: string | undefined): Manifest {
  if (text === undefined) return {};
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    const issue = error instanceof z.ZodError ? error.issues[0] : undefined;
    const reason = issue === undefined ? (error as Error).message.split('\n')[0] : `${issue.path.join('.')} ${issue.message}`;
    throw new BuildFailure(`composer.json is not valid: ${reason}`);
  }
}

async function findPhpRequest(source: SourceTree, { require }: Manifest, pins: VersionPins): Promise<VersionRequest | undefined> {
  const pinned = pins.get('php');
  if (pinned !== undefined) return pinned;
  const version = require?.['php'];
  return version === undefined ? undefined : { version, source: '"php" in composer.json' };
}

/** PHP itself and its extensions are no packages. */
const platformPackage = /^(php(-\w+)?|ext-[\w-]+|lib-[\w-]+|composer(-[\w-]+)?)$/;

/** Composer would ask its registry also where there is nothing to install. */
function needsComposer(text: string, { require = {}, ...others }: Manifest, lock: string | undefined): boolean {
  const packages = Object.keys(require).filter((name) => !platformPackage.test(name));
  return lock !== undefined || packages.length > 0 || 'autoload' in others || /"scripts"\s*:/.test(text);
}

/** Also with a reused `vendor`: what is loaded automatically depends on the app's own files. */
function installSteps(cache: 'cold' | 'warm'): readonly BuildStep[] {
  const argv = ['composer', 'install', '--no-dev', '--prefer-dist', '--optimize-autoloader', '--no-progress'];
  const title = `composer install --no-dev, cache ${cache}`;
  return [
    { title: `${title}, vendor reused`, argv, when: 'if-restored' },
    { title, argv, when: 'unless-restored', savesTree: true },
  ];
}

/** The directory that visitors see, relative to the app. */
async function findRoot(source: SourceTree, env: Readonly<Record<string, string>>): Promise<string> {
  const named = env['RAILPACK_PHP_ROOT_DIR'] ?? env['NIXPACKS_PHP_ROOT_DIR'];
  const relative = named?.replace(/^\/app(\/|$)/, '').replace(/\/$/, '');
  if (relative !== undefined && relative !== '') {
    if (/^[\w][\w./-]*$/.test(relative) && !relative.split('/').includes('..')) return relative;
    throw new BuildFailure(`RAILPACK_PHP_ROOT_DIR is "${named}", which is no directory of the app.`);
  }
  for (const directory of webRoots) if (await source.hasFile(`${directory}/index.php`)) return directory;
  return '.';
}
