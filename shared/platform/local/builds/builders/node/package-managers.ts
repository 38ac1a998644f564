import type { BuildStep, CachedTrees } from '../../plans/build-plan.ts';
import type { SourceTree } from '../../plans/source-tree.ts';
import { areStatic } from '../../plans/static-process.ts';
import { treeKey } from '../../plans/tree-key.ts';
import { findNodeProcesses } from './node-processes.ts';
import { allDependencies, manifestNames, type PackageJson, workspacePatterns } from './package-json.ts';
import type { PackageManager } from './package-manager.ts';
import { usesDevelopmentTools } from './pruning.ts';
import type { Workspace } from './workspace.ts';

/** How a package manager installs the dependencies. */
export interface NodeInstall {
  readonly notes: readonly string[];
  readonly steps: readonly BuildStep[];
  /** Afterwards, to leave out what only the build needed. */
  readonly prune: readonly BuildStep[];
  readonly env: Readonly<Record<string, string>>;
  readonly cacheDirectories: readonly string[];
  readonly tree?: CachedTrees;
  /** For the package manager when it starts the app. */
  readonly runtimeEnv?: Readonly<Record<string, string>>;
}

export interface InstallFacts {
  readonly source: SourceTree;
  readonly manifest: PackageJson;
  readonly manager: PackageManager;
  /** Exact versions of Node.js and of the package manager. */
  readonly versions: readonly string[];
  readonly workspace: Workspace;
  readonly cache: 'cold' | 'warm';
  /** As in `BuildContext`. */
  readonly ownCommands: readonly string[];
  /** Of Node.js, for native addons. */
  readonly headers: NodeHeaders | undefined;
}

export interface NodeHeaders {
  /** '26.1.0' */
  readonly version: string;
  /** That has them in include/node. */
  readonly directory: string;
}

const npmEnv = {
  npm_config_cache: '/cache/npm',
  npm_config_fund: 'false',
  npm_config_audit: 'false',
  npm_config_prefer_offline: 'true',
};

/** Plans the installation by the package manager that the app uses. */
export async function planNodeInstall(facts: InstallFacts): Promise<NodeInstall> {
  const plugAndPlay = facts.manager.tool === 'yarn-berry' && !(await usesNodeModules(facts.source));
  const installed = await planTree(facts);
  const tree = plugAndPlay ? await planPackages(facts.source, installed) : installed;
  const cached = tree === undefined ? {} : { tree };
  switch (facts.manager.name) {
    case 'pnpm':
      return { ...planPnpm(facts), ...cached };
    case 'yarn':
      return { ...(await planYarn(facts, plugAndPlay)), ...cached };
    case 'bun':
      return { ...planBun(facts), ...cached };
    case 'npm':
      return { ...planNpm(facts), ...cached };
  }
}

/**
 * node_modules can be put back if all that it follows from is in the manifests, the lockfile and the settings of the package
 * manager. Packages by path have more.
 */
async function planTree({ source, manager, versions, workspace }: InstallFacts): Promise<CachedTrees | undefined> {
  const { lockfile } = manager;
  const manifests = [...workspace.packages.values()];
  const byPath = manifests.some((manifest) =>
    Object.values(allDependencies(manifest)).some((version) => /^(file|link|portal):|^(\.{0,2}|~)\//.test(version)),
  );
  if (lockfile === undefined || byPath) return undefined;
  const settings = ['.npmrc', '.yarnrc', '.yarnrc.yml', 'pnpm-workspace.yaml', '.pnpmfile.cjs', 'bunfig.toml'];
  const paths = [...workspace.packages.keys()].flatMap((directory) =>
    manifestNames.map((name) => (directory === '' ? name : `${directory}/${name}`)),
  );
  const texts = await Promise.all([...settings, ...paths].map(async (path) => [path, await source.readText(path)]));
  const key = treeKey(versions, lockfile.name, lockfile.text, texts);
  const directories = [...workspace.packages.keys()].filter((directory) => directory !== '');
  return { paths: ['node_modules', ...directories.map((directory) => `${directory}/node_modules`)], key };
}

/** Packages of Plug'n'Play, unless the app has them in its repository. */
async function planPackages(source: SourceTree, installed: CachedTrees | undefined): Promise<CachedTrees | undefined> {
  const own = (await source.list('.yarn/cache')).length > 0;
  return own || installed === undefined ? undefined : { ...installed, paths: ['.yarn/cache', '.yarn/unplugged'] };
}

const hooks = ['preinstall', 'install', 'postinstall', 'preprepare', 'prepare', 'postprepare'] as const;

/** Whether the app's own scripts run at each installation. */
function isHooked({ workspace }: InstallFacts): boolean {
  return [...workspace.packages.values()].some(({ scripts }) => hooks.some((name) => scripts?.[name] !== undefined));
}

/** Over packages that were restored, the package manager has nothing to do but to run the app's own scripts. */
function overRestored(facts: InstallFacts, title: string, argv: readonly string[]): BuildStep {
  const reused = `${facts.manager.name} install, cache warm, node_modules reused`;
  return isHooked(facts)
    ? { title: reused, argv, when: 'if-restored' }
    : { title, argv, when: 'if-restored', skipIf: async () => reused };
}

function planNpm(facts: InstallFacts): NodeInstall {
  const { manifest, manager, cache } = facts;
  const nothing = isEmpty(allDependencies(manifest));
  const needed = !nothing || isHooked(facts) || workspacePatterns(manifest).length > 0;
  const stale = manager.lockfile === undefined ? undefined : findStaleEntry(manager.lockfile.text, manifest);
  const dev = '--include=dev';
  const exact = manager.lockfile !== undefined && stale === undefined;
  const install: BuildStep = exact
    ? { title: `npm ci, cache ${cache}`, argv: ['npm', 'ci', dev], when: 'unless-restored', savesTree: true }
    : { title: `npm install, cache ${cache}`, argv: ['npm', 'install', '--no-package-lock', dev] };
  return {
    notes: [
      ...(needed ? [] : ['No dependencies to install']),
      ...(needed && manager.lockfile === undefined
        ? ['No package-lock.json: versions may differ from build to build. Commit one to fix them.']
        : []),
      ...(needed && stale !== undefined
        ? [`package-lock.json does not match package.json (${stale}). Run \`npm install\` and commit package-lock.json.`]
        : []),
    ],
    steps: !needed ? [] : exact ? [overRestored(facts, install.title, ['npm', 'install', '--no-save', dev]), install] : [install],
    prune: pruneStep(facts, ['npm', 'prune', '--omit=dev', '--ignore-scripts', '--no-save']),
    env: npmEnv,
    cacheDirectories: ['npm'],
  };
}

/** A dependency of package.json that package-lock.json has another range for; `npm ci` would refuse. */
function findStaleEntry(lockfile: string, manifest: PackageJson): string | undefined {
  let root: Pick<PackageJson, 'dependencies' | 'devDependencies' | 'optionalDependencies'> | undefined;
  try {
    root = (JSON.parse(lockfile) as { packages?: Record<string, PackageJson> }).packages?.[''];
  } catch {
    return 'it is not valid JSON';
  }
  if (root === undefined) return undefined; // of npm 6
  const [locked, wanted] = [allDependencies(root), allDependencies(manifest)];
  return Object.keys({ ...locked, ...wanted }).find((name) => locked[name] !== wanted[name]);
}

function planPnpm(facts: InstallFacts): NodeInstall {
  const frozen = facts.manager.lockfile === undefined ? '--no-frozen-lockfile' : '--frozen-lockfile';
  const argv = ['pnpm', 'install', frozen, '--prefer-offline', '--prod=false'];
  const title = `pnpm install ${frozen}, cache ${facts.cache}`;
  return {
    notes: [],
    steps: [
      overRestored(facts, title, argv),
      ...(facts.headers === undefined ? [] : [placeHeaders(facts.headers)]),
      { title, argv, when: 'unless-restored', savesTree: true },
    ],
    prune: facts.workspace.packages.size > 1 ? [] : pruneStep(facts, ['pnpm', 'prune', '--prod', '--ignore-scripts']),
    // CI: pnpm asks before it removes a node_modules, unless nobody is there to answer.
    env: {
      ...npmEnv,
      ...pnpmSettings({ store_dir: '/cache/pnpm', package_import_method: 'copy', ...ownVersion }),
      CI: 'true',
    },
    cacheDirectories: ['npm', 'pnpm'],
    runtimeEnv: pnpmSettings({ verify_deps_before_run: 'false', ...ownVersion }),
  };
}

/** Where node-gyp looks for headers before it downloads them: pnpm hides the variables of npm from it. */
function placeHeaders({ version, directory }: NodeHeaders): BuildStep {
  const script =
    'mkdir -p "$HOME/.cache/node-gyp/$1" && cd "$HOME/.cache/node-gyp/$1" && ln -sfn "$2/include" include && echo 11 > installVersion';
  return {
    title: 'Headers of Node.js for native addons',
    argv: ['/bin/sh', '-c', script, 'headers', version, directory],
    when: 'unless-restored',
  };
}

/** The version of pnpm was chosen by the platform. The second name is that of pnpm 11. */
const ownVersion = { manage_package_manager_versions: 'false', pm_on_fail: 'ignore' };

/** pnpm reads variables of npm until 10, and of its own from 11 on. */
function pnpmSettings(settings: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const named = Object.entries(settings).flatMap(([name, value]) =>
    ['npm', 'pnpm'].map((tool) => [`${tool}_config_${name}`, value]),
  );
  return Object.fromEntries(named) as Readonly<Record<string, string>>;
}

async function planYarn(facts: InstallFacts, plugAndPlay: boolean): Promise<NodeInstall> {
  const { source, manager, cache } = facts;
  const berry = manager.tool === 'yarn-berry';
  const locked = manager.lockfile !== undefined;
  const argv = [
    'yarn',
    'install',
    ...(berry
      ? locked
        ? ['--immutable']
        : []
      : ['--production=false', '--non-interactive', ...(locked ? ['--frozen-lockfile'] : [])]),
  ];
  const title = `yarn install, cache ${cache}`;
  const own = yarnPath(await source.readText(berry ? '.yarnrc.yml' : '.yarnrc'));
  const ignoresPath = own === undefined || !(await source.hasFile(own));
  const runtimeEnv = { ...(ignoresPath ? { YARN_IGNORE_PATH: '1' } : {}), YARN_ENABLE_TELEMETRY: 'false' };
  return {
    notes: plugAndPlay ? ["Installing with Yarn's Plug'n'Play"] : [],
    steps: plugAndPlay
      ? [
          { title: `${title}, packages reused`, argv, when: 'if-restored' },
          { title, argv, when: 'unless-restored', savesTree: true },
        ]
      : [overRestored(facts, title, argv), { title, argv, when: 'unless-restored', savesTree: true }],
    prune: [],
    env: {
      ...npmEnv,
      ...runtimeEnv,
      // Plug'n'Play loads packages from here at run time too, so it is in the app.
      YARN_CACHE_FOLDER: plugAndPlay ? '/app/.yarn/cache' : '/cache/yarn',
      ...(plugAndPlay ? { YARN_GLOBAL_FOLDER: '/cache/yarn' } : {}),
      YARN_ENABLE_GLOBAL_CACHE: 'false',
    },
    cacheDirectories: ['npm', 'yarn'],
    runtimeEnv,
  };
}

function planBun(facts: InstallFacts): NodeInstall {
  const locked = facts.manager.lockfile !== undefined;
  const argv = ['bun', 'install', ...(locked ? ['--frozen-lockfile'] : [])];
  const title = `${argv.join(' ')}, cache ${facts.cache}`;
  return {
    notes: [],
    steps: [overRestored(facts, title, argv), { title, argv, when: 'unless-restored', savesTree: true }],
    prune: [],
    env: { ...npmEnv, BUN_INSTALL_CACHE_DIR: '/cache/bun', DO_NOT_TRACK: '1' },
    cacheDirectories: ['npm', 'bun'],
    runtimeEnv: { BUN_INSTALL_CACHE_DIR: '/tmp/.bun', DO_NOT_TRACK: '1' },
  };
}

function pruneStep({ manifest, ownCommands }: InstallFacts, argv: readonly string[]): readonly BuildStep[] {
  if (isEmpty(manifest.devDependencies)) return [];
  const title = `${argv[0]} prune, without development dependencies`;
  const skipIf = async (built: SourceTree): Promise<string | undefined> => {
    const defaults = await findNodeProcesses(built, { manifest, manager: 'npm', runsOnBun: false });
    return areStatic(defaults) && ownCommands.length === 0
      ? 'The app is static files: its dependencies are no part of the image'
      : usesDevelopmentTools(built, manifest, ownCommands.length === 0 ? Object.values(defaults) : ownCommands);
  };
  return [{ title, argv, skipIf }];
}

/** Of Yarn's settings: a release of Yarn that is part of the source. */
function yarnPath(settings: string | undefined): string | undefined {
  return /^(?:yarnPath:|yarn-path)\s*["']?([^"'\s]+)/m.exec(settings ?? '')?.[1];
}

async function usesNodeModules(source: SourceTree): Promise<boolean> {
  return /^nodeLinker:\s*["']?(node-modules|pnpm)/m.test((await source.readText('.yarnrc.yml')) ?? '');
}

function isEmpty(group: Readonly<Record<string, string>> | undefined): boolean {
  return group === undefined || Object.keys(group).length === 0;
}
