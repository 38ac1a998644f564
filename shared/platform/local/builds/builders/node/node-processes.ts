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
  const find = async (files: readonly (string | undefined)[]): Promise<Processes> => {
    for (const file of files)
      if (file !== undefined && /^[\w./-]+$/.test(file) && (await built.hasFile(file))) return { web: `${program} ${file}` };
    return {};
  };
  const servers = developed ? {} : await find([manifest.main, runsOnBun ? manifest.module : undefined, ...serverFiles]);
  if (isFound(servers)) return servers;
  const left = manifest.scripts?.['build'] === undefined ? {} : await findServedOutput(built, manifest, directory, builtOutputs);
  if (isFound(left)) return left;
  const own = developed ? {} : await find(mainFiles);
  if (isFound(own)) return own;
  const served = await findServedOutput(built, manifest, directory);
  return isFound(served) || developed ? served : find(compiledFiles);
}

function isFound(processes: Processes): boolean {
  return Object.keys(processes).length > 0;
}

/** At the top of the source. What bundlers take as the entry of a site has the names of `mainFiles`, so what a build left comes before those. */
const serverFiles = ['server.js', 'server.mjs', 'server.cjs', 'server.ts'] as const;
const mainFiles = ['index.js', 'app.js', 'main.js', 'index.mjs', 'index.ts', 'main.ts', 'app.ts'] as const;

/** What compilers leave, and what runtimes take without one. A library or a site has such files as well, so these come last. */
const compiledFiles = ['dist', 'build', 'lib', 'out', 'src'].flatMap((directory) =>
  ['server', 'index', 'main', 'app'].flatMap((name) =>
    ['js', 'mjs', 'cjs', ...(directory === 'src' ? ['ts'] : [])].map((ending) => `${directory}/${name}.${ending}`),
  ),
);

/**
 * The server that the build of a framework left, or its static files.
 * @param directory as of `findNodeProcesses`
 * @param outputs where static files are looked for
 */
export async function findServedOutput(
  built: SourceTree,
  manifest: PackageJson,
  directory = '',
  outputs = [...builtOutputs, 'public', '.'],
): Promise<Processes> {
  return (await findFrameworkProcess(built, manifest)) ?? (await findStaticOutput(built, manifest, directory, outputs)) ?? {};
}

/** The "start" that templates of static sites come with is for development, or shows the built site on a port of its own. */
function isDevelopmentServer(start: string): boolean {
  return developmentServers.test(start.trim().replace(settings, ''));
}

/** `PORT=3000 react-scripts start`, `cross-env BROWSER=none …`, `set PORT=3000 && …`. */
const settings = /^(?:(?:npx |cross-env |env )?(?:\w{1,80}=\S{0,200} )+|set \w{1,80}=\S{0,200} ?&& ?)?(?:npx )?/;

const developmentServers = new RegExp(
  `^(?:${[
    'ng serve',
    '(?:react-scripts|react-app-rewired|craco) start',
    'expo start',
    'gatsby (?:develop|serve|start)',
    'gridsome develop',
    'vue-cli-service serve',
    'docusaurus (?:start|serve)',
    'docusaurus-start',
    'eleventy --serve',
    'vitepress (?:dev|preview|serve)(?: \\S+)?',
    'vuepress dev(?: \\S+)?',
    'vite(?: (?:dev|preview|serve))?',
    'astro (?:dev|preview)',
    'parcel(?: serve)?(?: \\S+\\.html)?',
    'webpack(?:-dev-server| serve).*',
    'ember (?:serve|server|s)',
    '(?:umi|max|dumi|nuxt|nuxi|next|remix|solid-start|vinxi|react-router|quasar) dev',
    'ionic serve',
    'stencil build .*--serve',
    'sanity (?:dev|start)',
    'storybook dev.*',
    'start-storybook.*',
    'brunch watch.*',
    'polymer serve',
    'preact watch',
    'live-server.*',
  ].join('|')})(?: -.*)?$`,
);

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
  ['dist/analog/server/index.mjs', 'node dist/analog/server/index.mjs', '@analogjs/platform'],
  ['dist/main.js', 'node dist/main.js', '@nestjs/core'],
];

async function findFrameworkProcess(built: SourceTree, manifest: PackageJson): Promise<Processes | undefined> {
  const dependencies = allDependencies(manifest);
  for (const [file, command, dependency] of servers) {
    if (dependency !== undefined && dependencies[dependency] === undefined) continue;
    if (await built.hasFile(file)) return { web: command };
  }
  if (tanStackStarts.some((name) => dependencies[name] !== undefined) && (await built.hasFile('dist/server/server.js')))
    return { web: await findTanStackServer(built) };
  if (dependencies['@angular/ssr'] !== undefined)
    for (const name of await built.list('dist')) {
      const server = `dist/${name}/server/server.mjs`;
      if (/^[\w.-]+$/.test(name) && (await built.hasFile(server))) return { web: `node ${server}` };
    }
  // Its adapter for an unknown host builds nothing that could be started. Static output, where there is some, is better.
  if (dependencies['@sveltejs/kit'] !== undefined && !(await built.hasFile('build/index.html')))
    if (await built.hasFile('.svelte-kit/output/server/index.js')) return { web: 'vite preview --host 0.0.0.0 --port $PORT' };
  return undefined;
}

const tanStackStarts = ['@tanstack/react-start', '@tanstack/solid-start', '@tanstack/vue-start'] as const;

/** Its build leaves a module that answers requests, and no server. srvx is one that comes with its packages, though not at the top with every package manager. */
async function findTanStackServer(built: SourceTree): Promise<string> {
  const srvx = 'node_modules/srvx/bin/srvx.mjs';
  return (await built.hasFile(srvx))
    ? `node ${srvx} --prod -s ../client dist/server/server.js`
    : 'vite preview --host 0.0.0.0 --port $PORT';
}

const builtOutputs = [
  'dist',
  'dist/spa',
  '.vitepress/dist',
  'docs/.vitepress/dist',
  'src/.vuepress/dist',
  'docs/.vuepress/dist',
  '.vuepress/dist',
  'build',
  'build/default',
  'out',
  'build/client',
  'dist/client',
  'dist/analog/public',
  '.output/public',
  'storybook-static',
  'www',
  '_site',
];

/** What makes a file of each page. */
const generators = [
  'astro', 'next', 'gatsby', '@11ty/eleventy', 'vitepress', '@docusaurus/core', 'docusaurus', 'hexo', 'vuepress', 'gridsome',
] as const; // biome-ignore format: a list of words

/** A directory that a build left, with an index.html. Single-page apps get it for every address without a file. */
async function findStaticOutput(
  built: SourceTree,
  manifest: PackageJson,
  parent: string,
  outputs: readonly string[],
): Promise<Processes | undefined> {
  const angular = (await built.list('dist')).flatMap((name) => [`dist/${name}/browser`, `dist/${name}`]);
  const dependencies = allDependencies(manifest);
  const pages = generators.some((name) => dependencies[name] !== undefined);
  for (const directory of outputs.flatMap((output) => (output === 'dist' ? ['dist', ...angular] : [output]))) {
    if (!(await built.hasFile(`${directory}/index.html`))) continue;
    const fallback = !pages && directory !== '.' && !(await built.hasFile(`${directory}/404.html`));
    return staticProcess(posix.join(parent, directory), { fallback });
  }
  return undefined;
}
