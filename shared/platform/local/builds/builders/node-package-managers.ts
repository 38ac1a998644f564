import { createHash } from 'node:crypto';
import type { BuildStep, CachedTree } from './builder.ts';
import type { PackageJson } from './package-json.ts';
import type { SourceTree } from './source-tree.ts';

/** How a package manager brings node_modules about. */
export interface NodeInstall {
  readonly manager: 'npm' | 'pnpm' | 'yarn';
  /** Runs the package manager; arguments follow. */
  readonly command: readonly string[];
  readonly notes: readonly string[];
  readonly steps: readonly BuildStep[];
  /** Afterwards, to leave out what only the build needed. */
  readonly prune: readonly BuildStep[];
  readonly env: Readonly<Record<string, string>>;
  readonly cacheDirectories: readonly string[];
  readonly tree?: CachedTree;
}

interface Facts {
  readonly node: string;
  readonly cache: 'cold' | 'warm';
}

const npmEnv = {
  npm_config_cache: '/cache/npm',
  npm_config_fund: 'false',
  npm_config_audit: 'false',
  npm_config_prefer_offline: 'true',
};

export async function planNodeInstall(source: SourceTree, manifest: PackageJson, facts: Facts): Promise<NodeInstall> {
  const lockfile = await findLockfile(source, manifest);
  const tree = await planTree(source, manifest, lockfile, facts.node);
  const cached = tree === undefined ? {} : { tree };
  switch (lockfile?.manager) {
    case 'pnpm':
      return { ...planPnpm(manifest, lockfile.text, facts), ...cached };
    case 'yarn':
      return { ...planYarn(manifest, lockfile.text, facts), ...cached };
    default:
      return { ...planNpm(manifest, lockfile?.name, facts), ...cached };
  }
}

interface Lockfile {
  readonly name: string;
  readonly manager: 'npm' | 'pnpm' | 'yarn';
  readonly text: string;
}

const lockfiles = [
  ['pnpm-lock.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['npm-shrinkwrap.json', 'npm'],
  ['package-lock.json', 'npm'],
] as const;

/** Where there are several, "packageManager" decides. */
async function findLockfile(source: SourceTree, manifest: PackageJson): Promise<Lockfile | undefined> {
  const wanted = manifest.packageManager?.split('@')[0];
  const ordered = [...lockfiles].sort(([, one], [, other]) => Number(other === wanted) - Number(one === wanted));
  for (const [name, manager] of ordered) {
    const bytes = await source.readBytes(name, 32 * 1024 * 1024);
    if (bytes !== undefined) return { name, manager, text: new TextDecoder().decode(bytes) };
  }
  return undefined;
}

/**
 * node_modules can be put back when all it follows from is in two files. Workspaces and packages by path have more,
 * and a lockfile must be there to follow from.
 */
async function planTree(
  source: SourceTree,
  manifest: PackageJson,
  lockfile: Lockfile | undefined,
  node: string,
): Promise<CachedTree | undefined> {
  const dependencies = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies };
  const local = Object.values(dependencies).some((version) => /^(file|link|portal|workspace):|^[./~]/.test(version));
  if (lockfile === undefined || local || manifest.workspaces !== undefined || (await source.hasFile('pnpm-workspace.yaml')))
    return undefined;
  const settings = await Promise.all(['package.json', '.npmrc', '.yarnrc', '.yarnrc.yml'].map((name) => source.readText(name)));
  const key = createHash('sha256')
    .update(JSON.stringify([node, lockfile.name, lockfile.text, settings]))
    .digest('hex');
  return { path: 'node_modules', key };
}

function planNpm(manifest: PackageJson, lockfile: string | undefined, { cache }: Facts): NodeInstall {
  const nothing = [manifest.dependencies, manifest.devDependencies, manifest.optionalDependencies].every((group) =>
    isEmpty(group),
  );
  const hooked = ['preinstall', 'install', 'postinstall', 'prepare'].some((name) => manifest.scripts?.[name] !== undefined);
  const needed = !nothing || hooked || manifest.workspaces !== undefined;
  const install = (title: string, argv: readonly string[], when?: BuildStep['when']): BuildStep => ({
    title,
    argv: ['npm', ...argv, '--include=dev'],
    ...(when === undefined ? {} : { when }),
    ...(when === 'unless-restored' ? { savesTree: true } : {}),
  });
  return {
    manager: 'npm',
    command: ['npm'],
    notes: [
      ...(needed ? [] : ['No dependencies to install']),
      ...(needed && lockfile === undefined
        ? ['No package-lock.json: versions may differ from build to build. Commit one to fix them.']
        : []),
    ],
    steps: !needed
      ? []
      : lockfile === undefined
        ? [install(`npm install, cache ${cache}`, ['install', '--no-package-lock'])]
        : [
            // Over the node_modules of a successful `npm ci` of the same lockfile it only runs the app's own hooks.
            install(`npm install, cache warm, node_modules reused`, ['install', '--no-save'], 'if-restored'),
            install(`npm ci, cache ${cache}`, ['ci'], 'unless-restored'),
          ],
    prune: isEmpty(manifest.devDependencies)
      ? []
      : [
          {
            title: 'npm prune, without development dependencies',
            argv: ['npm', 'prune', '--omit=dev', '--ignore-scripts', '--no-save'],
          },
        ],
    env: npmEnv,
    cacheDirectories: ['npm'],
  };
}

function planPnpm(manifest: PackageJson, lockfile: string, { cache }: Facts): NodeInstall {
  const command = npx('pnpm', declaredVersion(manifest, 'pnpm') ?? pnpmVersion(lockfile));
  const argv = [...command, 'install', '--frozen-lockfile', '--prefer-offline', '--prod=false'];
  return {
    manager: 'pnpm',
    command,
    notes: [],
    steps: [
      { title: 'pnpm install, cache warm, node_modules reused', argv, when: 'if-restored' },
      { title: `pnpm install --frozen-lockfile, cache ${cache}`, argv, when: 'unless-restored', savesTree: true },
    ],
    prune: isEmpty(manifest.devDependencies)
      ? []
      : [{ title: 'pnpm prune, without development dependencies', argv: [...command, 'prune', '--prod', '--ignore-scripts'] }],
    // CI: pnpm asks before it removes a node_modules, unless nobody is there to answer.
    env: {
      ...npmEnv,
      npm_config_store_dir: '/cache/pnpm',
      npm_config_package_import_method: 'copy',
      npm_config_manage_package_manager_versions: 'false',
      CI: 'true',
    },
    cacheDirectories: ['npm', 'pnpm'],
  };
}

function planYarn(manifest: PackageJson, lockfile: string, { cache }: Facts): NodeInstall {
  const berry = lockfile.includes('\n__metadata:');
  const version = declaredVersion(manifest, 'yarn');
  const command = berry
    ? npx('@yarnpkg/cli-dist', version ?? '4', 'yarn')
    : npx('yarn', version?.startsWith('1.') === true ? version : '1.22.22');
  const argv = [
    ...command,
    'install',
    ...(berry ? ['--immutable'] : ['--frozen-lockfile', '--production=false', '--non-interactive']),
  ];
  return {
    manager: 'yarn',
    command,
    notes: berry ? ['Installing into node_modules (nodeLinker)'] : [],
    steps: [
      { title: 'yarn install, cache warm, node_modules reused', argv, when: 'if-restored' },
      { title: `yarn install, cache ${cache}`, argv, when: 'unless-restored', savesTree: true },
    ],
    prune: [],
    env: {
      ...npmEnv,
      YARN_CACHE_FOLDER: '/cache/yarn',
      YARN_ENABLE_GLOBAL_CACHE: 'false',
      YARN_ENABLE_TELEMETRY: 'false',
      YARN_NODE_LINKER: 'node-modules',
      YARN_IGNORE_PATH: '1',
    },
    cacheDirectories: ['npm', 'yarn'],
  };
}

/** A package manager that npm fetches, once per cache. */
function npx(name: string, version: string, program = name): readonly string[] {
  return ['npm', 'exec', '--yes', `--package=${name}@${version}`, '--', program];
}

/** Of "packageManager": "pnpm@9.1.0+sha512.…"; the hash is npm's to check against its registry. */
function declaredVersion(manifest: PackageJson, name: string): string | undefined {
  return new RegExp(`^${name}@(\\d+\\.\\d+\\.\\d+(?:[A-Za-z.-][0-9A-Za-z.-]*)?)(\\+|$)`).exec(manifest.packageManager ?? '')?.[1];
}

function pnpmVersion(lockfile: string): string {
  const format = Number(/^lockfileVersion: '?(\d+)/m.exec(lockfile)?.[1] ?? 9);
  return format >= 9 ? '10' : format >= 6 ? '8' : '7';
}

function isEmpty(group: Readonly<Record<string, string>> | undefined): boolean {
  return group === undefined || Object.keys(group).length === 0;
}
