/** What a workspace builds and runs whose own package.json has no script for it. */
import type { BuildStep } from '../../plans/build-plan.ts';
import { openSubtree, type SourceTree } from '../../plans/source-tree.ts';
import { findNodeProcesses, findServedOutput, type NodeApp } from './node-processes.ts';
import { allDependencies, type PackageJson } from './package-json.ts';
import type { ManagerName, PackageManager } from './package-manager.ts';
import type { Workspace } from './workspace.ts';

/** Names of the directory of a package that is the app, where several could be; the first one wins. */
const appNames = ['web', 'app', 'server', 'api', 'www', 'site', 'frontend', 'client', 'backend'] as const;

/** Builds each package that has a "build" script, after those that it depends on. */
export function workspaceBuildSteps(
  manifest: PackageJson,
  manager: PackageManager,
  { packages }: Workspace,
): readonly BuildStep[] {
  if (![...packages.values()].some(({ scripts }) => scripts?.['build'] !== undefined)) return [];
  const argv = buildCommand(allDependencies(manifest), manager);
  return [{ title: argv.join(' '), argv, builds: true }];
}

function buildCommand(dependencies: Readonly<Record<string, string>>, { name, tool }: PackageManager): readonly string[] {
  if (dependencies['turbo'] !== undefined) return ['turbo', 'run', 'build'];
  if (dependencies['nx'] !== undefined) return ['nx', 'run-many', '--target=build'];
  switch (name) {
    case 'npm':
      return ['npm', 'run', 'build', '--workspaces', '--if-present'];
    case 'pnpm':
      return ['pnpm', '--recursive', '--if-present', 'run', 'build'];
    case 'bun':
      return ['bun', 'run', '--filter', '*', 'build'];
    case 'yarn':
      return tool === 'yarn-berry'
        ? ['yarn', 'workspaces', 'foreach', '--all', '--topological-dev', 'run', 'build']
        : ['yarn', '--silent', 'workspaces', 'run', 'build'];
  }
}

/** Processes of the one package of the workspace that is an app; of several that which is called like one. Empty if that is not clear. */
export async function findWorkspaceProcesses(
  built: SourceTree,
  app: NodeApp,
  workspace: Workspace,
): Promise<Readonly<Record<string, string>>> {
  const found = new Map<string, Readonly<Record<string, string>>>();
  for (const [directory, manifest] of workspace.packages) {
    if (directory === '' || !isPlain(directory)) continue;
    const processes = await findPackageProcesses(built, { ...app, manifest }, directory);
    if (Object.keys(processes).length > 0) found.set(directory, processes);
  }
  const directories = [...found.keys()];
  const named = appNames.map((name) => directories.find((directory) => directory.split('/').at(-1) === name));
  const chosen = directories.length === 1 ? directories[0] : named.find((directory) => directory !== undefined);
  return found.get(chosen ?? '') ?? {};
}

/** A library has an index.js as well: only a "start" script, a framework or a built site makes a package an app. */
async function findPackageProcesses(
  built: SourceTree,
  app: NodeApp,
  directory: string,
): Promise<Readonly<Record<string, string>>> {
  const tree = openSubtree(built, directory);
  const starts = app.manifest.scripts?.['start'] !== undefined;
  const processes = starts
    ? await findNodeProcesses(tree, app, directory)
    : await findServedOutput(tree, app.manifest, directory);
  const path = `PATH=/app/${directory}/node_modules/.bin:$PATH`;
  return Object.fromEntries(
    Object.entries(processes).map(([type, command]) => [
      type,
      command.startsWith('/') ? command : `cd ${directory} && ${path} ${command}`,
    ]),
  );
}

/** Whether a shell takes it as one word. */
function isPlain(directory: string): boolean {
  return /^[\w@./-]+$/.test(directory);
}

/** For a workspace without an app, or with several. */
export function workspaceHint({ packages }: Workspace, manager: ManagerName): string {
  const apps = [...packages].flatMap(([directory, { scripts }]) =>
    directory !== '' && scripts?.['start'] !== undefined ? [directory] : [],
  );
  const fix = `Add "scripts": {"start": …} to the package.json at the top, or a Procfile with a line as: web: cd ${apps[0] ?? '<directory>'} && ${manager === 'npm' ? 'npm start' : `${manager} run start`}`;
  return apps.length === 0
    ? `No package of this workspace has a "start" script. ${fix}`
    : `Several packages of this workspace have a "start" script (${apps.slice(0, 10).join(', ')}), and none is called web, app or server. ${fix}`;
}
