/** What a Node.js app runs when neither a Procfile nor a "start" script says so. */
import { posix } from 'node:path';
import type { SourceTree } from '../../plans/source-tree.ts';
import { staticProcess } from '../../plans/static-process.ts';
import { allDependencies, type PackageJson } from './package-json.ts';
import type { ManagerName } from './package-manager.ts';

export const startHint =
  'package.json has no "start" script, and there is no server.js, index.js or app.js and no static output such as dist/index.html. ' +
  'Add "scripts": {"start": "node <your file>"}, or a Procfile with a line as: web: node <your file>';

export interface NodeApp {
  readonly manifest: PackageJson;
  readonly manager: ManagerName;
  readonly runsOnBun: boolean;
}

type Processes = Readonly<Record<string, string>>;

/**
 * @param built after the build; a directory of the source that has not been built yet finds what is there already
 * @param directory of the package in the app, if it is not the app itself
 */
export async function findNodeProcesses(built: SourceTree, app: NodeApp, directory = ''): Promise<Processes> {
  const { manifest, manager, runsOnBun } = app;
  const start = manifest.scripts?.['start'];
  const developed = start !== undefined && isDevelopmentServer(start);
  if (start !== undefined && !developed) {
    const output = await outputOfExport(built, start, directory);
    if (output === undefined && selfContained.includes(start.trim()) && manifest.scripts?.['prestart'] === undefined)
      return { web: start.trim() };
    return output ?? { web: manager === 'npm' ? 'npm start' : `${manager} run start` };
  }
  const program = runsOnBun ? 'bun' : 'node';
  const files = [manifest.main, 'server.js', 'index.js', 'app.js', 'index.mjs', 'server.mjs', 'index.ts', 'server.ts', 'main.ts'];
  for (const file of developed ? [] : files)
    if (file !== undefined && /^[\w./-]+$/.test(file) && (await built.hasFile(file))) return { web: `${program} ${file}` };
  return findServedOutput(built, manifest, directory);
}

/** The server that the build of a framework left, or its static files. @param directory as of `findNodeProcesses` */
export async function findServedOutput(built: SourceTree, manifest: PackageJson, directory = ''): Promise<Processes> {
  return (await findFrameworkProcess(built, manifest)) ?? (await findStaticOutput(built, manifest, directory)) ?? {};
}

/** The "start" that templates of static sites come with is for development, or shows the built site on a port of its own. */
function isDevelopmentServer(start: string): boolean {
  return developmentServers.test(start.trim());
}

const developmentServers =
  /^(?:ng serve|react-scripts start|expo start|gatsby (?:develop|serve|start)|vue-cli-service serve|docusaurus (?:start|serve)|eleventy --serve|vitepress (?:dev|preview|serve)|vite(?: (?:dev|preview|serve))?|astro (?:dev|preview)|parcel(?: \S+\.html)?|webpack(?:-dev-server| serve).*)(?: --\S.*)?$/;

/** Frameworks whose template has a "start" for a server even where the build is a static export. */
async function outputOfExport(built: SourceTree, start: string, directory: string): Promise<Processes | undefined> {
  if (/^next start\b/.test(start) && !(await built.hasFile('.next/BUILD_ID')) && (await built.hasFile('out/index.html')))
    return staticProcess(posix.join(directory, 'out'), { fallback: false });
  if (/^next start\b/.test(start) && (await exportsNext(built)) && (await built.hasFile('out/index.html')))
    return staticProcess(posix.join(directory, 'out'), { fallback: false });
  const server = /react-router-serve\s+(\S+)/.exec(start)?.[1];
  const served = server !== undefined && (await built.hasFile(server)) && !(await isWithoutServer(built));
  if (server !== undefined && !served && (await built.hasFile('build/client/index.html')))
    return staticProcess(posix.join(directory, 'build/client'), { fallback: !(await built.hasFile('build/client/404.html')) });
  return undefined;
}

/** React Router leaves a server even where it is only meant for the build. */
async function isWithoutServer(built: SourceTree): Promise<boolean> {
  for (const name of ['react-router.config.ts', 'react-router.config.js', 'react-router.config.mjs'])
    if (/\bssr[ \t]{0,9}:[ \t]{0,9}false\b/.test((await built.readText(name)) ?? '')) return true;
  return false;
}

function exportsNext(built: SourceTree): Promise<boolean> {
  return isNextOutput(built, /output:\s{0,9}["'`]export["'`]/);
}

/** Whether Next.js is to build a server that brings what it needs. */
export function isStandalone(source: SourceTree): Promise<boolean> {
  return isNextOutput(source, /output:\s{0,9}["'`]standalone["'`]/);
}

async function isNextOutput(source: SourceTree, pattern: RegExp): Promise<boolean> {
  for (const name of ['next.config.js', 'next.config.mjs', 'next.config.ts', 'next.config.cjs'])
    if (pattern.test((await source.readText(name)) ?? '')) return true;
  return false;
}

/** Servers that bring copies of the packages that they need. */
const selfContained = ['node .output/server/index.mjs', 'node .next/standalone/server.js'];

/** Whether all of an app's processes are servers that need no node_modules. */
export function areSelfContained(processes: Processes): boolean {
  const commands = Object.values(processes);
  return commands.length > 0 && commands.every((command) => selfContained.includes(command));
}

/** Servers that builds of frameworks leave. */
const servers: readonly (readonly [file: string, command: string, dependency?: string])[] = [
  ['.output/server/index.mjs', 'node .output/server/index.mjs'],
  ['.next/standalone/server.js', 'node .next/standalone/server.js'],
  ['.next/BUILD_ID', 'next start'],
  ['build/index.js', 'node build/index.js', '@sveltejs/kit'],
  ['dist/server/entry.mjs', 'node dist/server/entry.mjs', 'astro'],
  ['build/server/index.js', 'react-router-serve build/server/index.js', '@react-router/serve'],
  ['build/server/index.js', 'remix-serve build/server/index.js', '@remix-run/serve'],
  ['build/index.js', 'remix-serve build/index.js', '@remix-run/serve'],
  ['dist/main.js', 'node dist/main.js', '@nestjs/core'],
];

async function findFrameworkProcess(built: SourceTree, manifest: PackageJson): Promise<Processes | undefined> {
  const dependencies = allDependencies(manifest);
  for (const [file, command, dependency] of servers) {
    if (dependency !== undefined && dependencies[dependency] === undefined) continue;
    if (await built.hasFile(file)) return { web: command };
  }
  return undefined;
}

const outputs = [
  'dist',
  '.vitepress/dist',
  'docs/.vitepress/dist',
  'build',
  'out',
  'build/client',
  'dist/client',
  '.output/public',
  'public',
  '.',
] as const;

/** A directory that a build left, with an index.html. Single-page apps get it for every address without a file. */
async function findStaticOutput(built: SourceTree, manifest: PackageJson, parent: string): Promise<Processes | undefined> {
  const angular = (await built.list('dist')).flatMap((name) => [`dist/${name}/browser`, `dist/${name}`]);
  const dependencies = allDependencies(manifest);
  const pages = ['astro', 'next', 'gatsby', '@11ty/eleventy', 'vitepress', '@docusaurus/core'].some(
    (name) => dependencies[name] !== undefined,
  );
  for (const directory of [...outputs, '_site', ...angular]) {
    if (!(await built.hasFile(`${directory}/index.html`))) continue;
    const fallback = !pages && directory !== '.' && !(await built.hasFile(`${directory}/404.html`));
    return staticProcess(posix.join(parent, directory), { fallback });
  }
  return undefined;
}
