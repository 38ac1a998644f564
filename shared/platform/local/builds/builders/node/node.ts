import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { NodeToolchain, Toolchain } from '../../../toolchains/toolchain.ts';
import type { BuildPlan, BuildStep } from '../../plans/build-plan.ts';
import type { BuildContext, Builder } from '../../plans/builder.ts';
import { describeVersion } from '../../plans/describe-version.ts';
import type { SourceTree } from '../../plans/source-tree.ts';
import { areStatic, staticServerMounts } from '../../plans/static-process.ts';
import type { VersionPins } from '../../plans/version-pins.ts';
import { installBrowser } from '../browsers/playwright.ts';
import { findNodeLibraries, installsBrowser } from './node-libraries.ts';
import { areSelfContained, findNodeProcesses, isStandalone, startHint } from './node-processes.ts';
import { findNodeRequest, findToolRequest } from './node-versions.ts';
import { allDependencies, manifestNames, type PackageJson, readPackageJson } from './package-json.ts';
import { findPackageManager, type PackageManager } from './package-manager.ts';
import { planNodeInstall } from './package-managers.ts';
import { readWorkspace, type Workspace } from './workspace.ts';
import { findWorkspaceProcesses, workspaceBuildSteps, workspaceHint } from './workspace-processes.ts';

export const nodeBuilder: Builder = {
  name: 'node',
  looksFor: 'package.json (Node.js)',
  async detect(source) {
    for (const name of manifestNames) if (await source.hasFile(name)) return { what: 'Node.js app', why: name };
    return undefined;
  },
  async plan(source, context) {
    const manifest = (await readPackageJson(source)) ?? {};
    const workspace = await readWorkspace(source, manifest);
    const { pins, ownCommands } = context;
    if (ownCommands.length === 0) await refuseWithoutStart(source, manifest, workspace);
    const manager = await findPackageManager(source, manifest, pins);
    const tools = await findTools(context, { manifest, pins, manager });
    const versions = tools.all.map(({ version }) => version);
    const headers = tools.node?.headers;
    const install = await planNodeInstall({
      ...{ source, manifest, manager, versions, workspace, ownCommands, cache: context.cache },
      headers: headers === undefined ? undefined : { version: tools.node?.version ?? '', directory: headers },
    });
    const libraries = findNodeLibraries(workspace.packages);
    const app = { manifest, manager: manager.name, runsOnBun: tools.runsOnBun };
    return {
      notes: [...tools.notes, ...install.notes],
      steps: [
        ...install.steps,
        ...(installsBrowser(context.env, libraries) ? [installBrowser('node_modules/.bin/playwright')] : []),
        ...buildSteps(manifest, manager, workspace),
        ...(await standaloneSteps(source, manifest)),
        ...install.prune,
      ],
      env: {
        NODE_ENV: 'production',
        npm_config_update_notifier: 'false',
        NEXT_TELEMETRY_DISABLED: '1',
        ...libraries.env,
        // Native addons are compiled with these rather than with a download.
        ...(headers === undefined ? {} : { [headersVariable(tools.node?.version ?? '')]: headers }),
        ...install.env,
      },
      path: [...tools.all.flatMap(({ path }) => path), '/app/node_modules/.bin'],
      toolchain: [...tools.all.flatMap(({ mounts }) => mounts), ...staticServerMounts],
      cacheDirectories: install.cacheDirectories,
      ...(install.tree === undefined ? {} : { tree: install.tree }),
      keptDirectories: frameworkCaches(workspace.packages),
      systemPackages: libraries.systemPackages,
      runtimeEnv: {
        NODE_ENV: 'production',
        // What the app writes beside its code has a limit of its own, which npm's files shall not use up.
        npm_config_cache: '/tmp/.npm',
        npm_config_update_notifier: 'false',
        npm_config_logs_max: '0',
        ...libraries.env,
        ...install.runtimeEnv,
      },
      defaultProcesses: async (built) => {
        const own = await findNodeProcesses(built, app);
        return Object.keys(own).length > 0 ? own : findWorkspaceProcesses(built, app, workspace);
      },
      unusedBy: (processes) => (areStatic(processes) || areSelfContained(processes) ? dependencyDirectories(workspace) : []),
      processHint: workspace.packages.size > 1 ? workspaceHint(workspace, manager.name) : startHint,
    } satisfies BuildPlan;
  },
};

/** An app of Node.js without a manifest: a file that needs no packages. */
export const nodeScriptBuilder: Builder = {
  ...nodeBuilder,
  looksFor: 'server.js (Node.js)',
  async detect(source) {
    if (await source.hasFile('start.sh')) return undefined;
    // Beside an index.html other files are scripts of that page.
    const page = await source.hasFile('index.html');
    for (const name of ['server.js', 'server.mjs', ...(page ? [] : ['app.js', 'index.js', 'main.js', 'index.mjs'])])
      if (await source.hasFile(name)) return { what: 'Node.js app', why: name };
    return undefined;
  },
};

/** Where node-gyp finds the headers. The npm of Node.js 24 and later warns of the older name, and its node-gyp knows the newer one. */
function headersVariable(nodeVersion: string): string {
  return Number.parseInt(nodeVersion, 10) >= 24 ? 'npm_package_config_node_gyp_nodedir' : 'npm_config_nodedir';
}

/** What cannot start is refused before its dependencies are installed. A build or a framework may still make something to start. */
async function refuseWithoutStart(source: SourceTree, manifest: PackageJson, workspace: Workspace): Promise<void> {
  if (manifest.scripts?.['build'] !== undefined || workspace.packages.size > 1) return;
  if (Object.keys(allDependencies(manifest)).length > 0 || (await source.hasFile('index.html'))) return;
  const started = await findNodeProcesses(source, { manifest, manager: 'npm', runsOnBun: false });
  if (Object.keys(started).length === 0) throw new BuildFailure(startHint);
}

interface Tools {
  readonly node: NodeToolchain | undefined;
  /** Node.js first. */
  readonly all: readonly Toolchain[];
  /** Whether files are run by Bun where no script says otherwise. */
  readonly runsOnBun: boolean;
  readonly notes: readonly string[];
}

interface Asked {
  readonly manifest: PackageJson;
  readonly pins: VersionPins;
  readonly manager: PackageManager;
}

async function findTools({ toolchains }: BuildContext, { manifest, pins, manager }: Asked): Promise<Tools> {
  const notes: string[] = [];
  const note = (name: string, version: string, request: { version: string; source: string } | undefined): void => {
    notes.push(describeVersion(name, version, request));
  };
  const runsOnBun = manager.name === 'bun';
  const withoutNode = runsOnBun && Object.keys(allDependencies(manifest)).length === 0 && !pins.has('node');
  const request = findNodeRequest(manifest, pins);
  const node = withoutNode ? undefined : await toolchains.findNode(request);
  if (node !== undefined) note('Node.js', node.version, request);
  const all: Toolchain[] = node === undefined ? [] : [node];
  const npm = findToolRequest('npm', manifest, pins);
  if (manager.name !== 'npm' || npm !== undefined) {
    const asked = manager.name === 'npm' ? npm : manager.request;
    const tool = await toolchains.findTool(manager.tool, asked ?? { version: 'latest', source: 'package.json' });
    note(manager.name, tool.version, asked);
    // Before Node.js, which brings an npm of its own.
    all.unshift(tool);
  }
  const scripts = Object.values(manifest.scripts ?? {});
  if (!runsOnBun && (pins.has('bun') || scripts.some((script) => /(^|[\s;&|])bunx?\s/.test(script)))) {
    const bun = findToolRequest('bun', manifest, pins) ?? { version: 'latest', source: 'package.json' };
    all.push(await toolchains.findTool('bun', bun));
  }
  if (scripts.some((script) => /\bcorepack\b/.test(script)))
    all.push(await toolchains.findTool('corepack', { version: 'latest', source: 'package.json' }));
  return { node, all, runsOnBun, notes };
}

/** "heroku-postbuild" is there for platforms such as this one, and takes the place of "build". */
function buildSteps(manifest: PackageJson, manager: PackageManager, workspace: Workspace): readonly BuildStep[] {
  const name = ['heroku-postbuild', 'build'].find((script) => manifest.scripts?.[script] !== undefined);
  if (name === undefined) return workspaceBuildSteps(manifest, manager, workspace);
  return [{ title: `${manager.name} run ${name}`, argv: [manager.name, 'run', name], builds: true }];
}

/** A standalone server of Next.js lacks its assets, which Next.js expects on another host. */
async function standaloneSteps(source: SourceTree, manifest: PackageJson): Promise<readonly BuildStep[]> {
  if (allDependencies(manifest)['next'] === undefined || !(await isStandalone(source))) return [];
  const script = 'cp -R .next/static .next/standalone/.next/ && if [ -d public ]; then cp -R public .next/standalone/; fi';
  const skipIf = async (built: SourceTree): Promise<string | undefined> =>
    (await built.hasFile('.next/standalone/server.js')) ? undefined : 'The build left no .next/standalone/server.js';
  return [{ title: 'Copying assets to .next/standalone', argv: ['/bin/sh', '-c', script], skipIf }];
}

function dependencyDirectories({ packages }: Workspace): readonly string[] {
  const installed = [...packages.keys()].map((directory) => (directory === '' ? 'node_modules' : `${directory}/node_modules`));
  return [...installed, '.yarn/cache', '.yarn/unplugged'];
}

/** Where frameworks keep what makes their next build faster. */
const caches: readonly (readonly [dependency: string, directory: string])[] = [
  ['next', '.next/cache'],
  ...['nuxt', 'react-scripts', '@vue/cli-service', '@docusaurus/core', 'babel-loader', '@storybook/react', 'gridsome'].map(
    (name) => [name, 'node_modules/.cache'] as const,
  ),
  ['parcel', '.parcel-cache'],
  ['gatsby', '.cache'],
  ['astro', 'node_modules/.astro'],
  ['@angular/cli', '.angular/cache'],
  ['turbo', '.turbo/cache'],
  ['nx', '.nx/cache'],
];

function frameworkCaches(packages: ReadonlyMap<string, PackageJson>): readonly string[] {
  const found = [...packages].flatMap(([directory, manifest]) => {
    const dependencies = allDependencies(manifest);
    const here = caches.filter(([name]) => dependencies[name] !== undefined);
    return here.map(([, cache]) => (directory === '' ? cache : `${directory}/${cache}`));
  });
  return [...new Set(found)];
}
