/**
 * Toolchains in versions that the host does not have. Each is installed once, from its package registry, which also proves its
 * hash (npm's integrity, Go's checksum database). Builds and apps see them read-only. Nothing of a tenant takes part in an
 * installation but a version, which has been looked up in the registry's list (decision 38).
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, symlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import { z } from 'zod';
import { millisecondsPerHour, millisecondsPerMinute } from '#shared/durations.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import type { Log } from '#shared/log.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';

export const storedToolNames = ['node', 'npm', 'pnpm', 'yarn', 'yarn-berry', 'corepack', 'bun', 'deno', 'go', 'uv'] as const;
export type StoredToolName = (typeof storedToolNames)[number];

/** `version` is exact: '22.19.0'. */
export interface StoredTool {
  readonly name: StoredToolName;
  readonly version: string;
}

export interface ToolStore {
  /** Versions that can be installed, in no order; those that are installed where the registry cannot be reached. */
  listVersions(name: StoredToolName): Promise<readonly string[]>;
  /** Installs it unless it is there. Returns its directory. @throws BuildFailure if it cannot be installed */
  ensureTool(tool: StoredTool): Promise<string>;
}

export interface ToolStoreOptions {
  /** Absolute. */
  readonly directory: string;
  /** The operator's environment: how registries are reached. */
  readonly hostEnv: Readonly<Record<string, string | undefined>>;
  /** A Node.js program and npm's directory. */
  readonly node: string;
  readonly npm: string;
  /** Programs of the host that install: Go other versions of itself, Python's pip from PyPI. Undefined where there is none. */
  findProgram(name: 'go' | 'python3'): Promise<string | undefined>;
  readonly log?: Log;
}

/** Removes what a crash left of installations. To be called before the first one. */
export async function removeHalfInstalledTools(directory: string): Promise<void> {
  for (const name of await readdir(directory).catch(ifMissing([] as string[])))
    if (name.startsWith('.new-')) await rm(`${directory}/${name}`, { recursive: true, force: true });
}

/** Where a stored tool is seen inside the sandbox. */
export function targetOf({ name, version }: StoredTool): string {
  return `/opt/paas/tools/${name}/${version}`;
}

/** Directory of its programs inside the sandbox. */
export function programsOf(tool: StoredTool): string {
  return `${targetOf(tool)}/${npmPackages[tool.name]?.programs ?? 'bin'}`;
}

const architecture = process.arch;
const bunArchitecture = architecture === 'arm64' ? 'aarch64' : architecture;

interface NpmPackage {
  readonly package: string;
  readonly programs: string;
  /** Further names of its programs. */
  readonly links?: Readonly<Record<string, string>>;
}

const linked = (name: string): NpmPackage => ({ package: name, programs: 'node_modules/.bin' });

/** Tools that npm installs. Packages with a binary are named directly: no script of a package runs. */
const npmPackages: Partial<Record<StoredToolName, NpmPackage>> = {
  node: { package: `node-linux-${architecture}`, programs: `node_modules/node-linux-${architecture}/bin` },
  npm: linked('npm'),
  pnpm: linked('pnpm'),
  yarn: linked('yarn'),
  'yarn-berry': linked('@yarnpkg/cli-dist'),
  corepack: linked('corepack'),
  bun: {
    package: `@oven/bun-linux-${bunArchitecture}`,
    programs: `node_modules/@oven/bun-linux-${bunArchitecture}/bin`,
    links: { bunx: 'bun' },
  },
  deno: {
    package: `@deno/linux-${architecture}-glibc`,
    programs: `node_modules/@deno/linux-${architecture}-glibc`,
  },
};

const run = promisify(execFile);
const listedForMilliseconds = millisecondsPerHour;
const longestInstallMilliseconds = 5 * millisecondsPerMinute;
const exactVersion = /^\d+\.\d+(\.\d+)?([-+.0-9A-Za-z]*)$/;

export function createToolStore(options: ToolStoreOptions): ToolStore {
  const { directory } = options;
  const lists = new Map<StoredToolName, { until: number; versions: Promise<readonly string[]> }>();
  const installing = new Map<string, Promise<string>>();
  const listInstalled = (name: StoredToolName): Promise<readonly string[]> =>
    readdir(`${directory}/${name}`).catch(ifMissing([] as string[]));
  return {
    async listVersions(name) {
      const known = lists.get(name);
      if (known !== undefined && known.until > Date.now()) return known.versions;
      const versions = askRegistry(options, name).catch(async (error: unknown) => {
        options.log?.warn('versions of a tool could not be listed', { tool: name, error });
        lists.delete(name);
        return listInstalled(name);
      });
      lists.set(name, { until: Date.now() + listedForMilliseconds, versions });
      return versions;
    },
    async ensureTool(tool) {
      if (!exactVersion.test(tool.version)) throw new BuildFailure(`${tool.version} is not a version of ${tool.name}.`);
      const place = `${directory}/${tool.name}/${tool.version}`;
      if ((await listInstalled(tool.name)).includes(tool.version)) return place;
      const pending = installing.get(place) ?? install(options, tool, place).finally(() => installing.delete(place));
      installing.set(place, pending);
      return pending;
    },
  };
}

/** Into a directory beside it, which gets its name only when it is whole. */
async function install(options: ToolStoreOptions, tool: StoredTool, place: string): Promise<string> {
  const staged = `${options.directory}/.new-${randomUUID()}`;
  try {
    await mkdir(staged, { recursive: true, mode: 0o755 });
    await installInto(staged, options, tool);
    await mkdir(`${options.directory}/${tool.name}`, { recursive: true });
    await rename(tool.name === 'go' ? goRoot(staged, tool.version) : staged, place).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error; // another process was faster
    });
    return place;
  } catch (error) {
    options.log?.warn('a tool could not be installed', { tool: tool.name, version: tool.version, error });
    throw new BuildFailure(
      `${tool.name} ${tool.version} could not be installed from its package registry. Try again, or ask for another version.`,
    );
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
}

async function installInto(staged: string, options: ToolStoreOptions, tool: StoredTool): Promise<void> {
  if (tool.name === 'go') return installGo(options, tool.version, staged);
  if (tool.name !== 'uv') return installFromNpm(options, tool, staged);
  // A wheel that is a program: no code of the package runs, and pip proves its hash.
  const flags = [
    '--no-deps',
    '--only-binary',
    ':all:',
    '--no-compile',
    '--disable-pip-version-check',
    '--root-user-action',
    'ignore',
  ];
  await pip(options, ['install', ...flags, '--target', staged, `${tool.name}==${tool.version}`]);
}

async function installFromNpm(options: ToolStoreOptions, tool: StoredTool, staged: string): Promise<void> {
  const found = npmPackages[tool.name];
  if (found === undefined) throw new Error(`${tool.name} is not in the npm registry.`);
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--omit=optional', '--omit=dev'];
  await npm(options, staged, ['install', '--prefix', staged, ...flags, `${found.package}@${tool.version}`]);
  for (const [name, program] of Object.entries(found.links ?? {})) await symlink(program, `${staged}/${found.programs}/${name}`);
}

/** Go's own module proxy has its toolchains, and its checksum database their hashes. */
async function installGo(options: ToolStoreOptions, version: string, staged: string): Promise<void> {
  await go(options, staged, ['version'], `go${version}`);
}

function goModuleVersion(version: string): string {
  return `v0.0.1-go${version}.linux-${architecture === 'x64' ? 'amd64' : architecture}`;
}

function goRoot(staged: string, version: string): string {
  return `${staged}/golang.org/toolchain@${goModuleVersion(version)}`;
}

async function askRegistry(options: ToolStoreOptions, name: StoredToolName): Promise<readonly string[]> {
  if (name === 'go') {
    const said = await go(options, '/', ['list', '-m', '-versions', 'golang.org/toolchain']);
    const suffix = goModuleVersion('').slice('v0.0.1-go'.length);
    const versions = said.split(/\s+/).filter((word) => word.startsWith('v0.0.1-go') && word.endsWith(suffix));
    return versions.map((word) => word.slice('v0.0.1-go'.length, -suffix.length)).filter((word) => /^[\d.]+$/.test(word));
  }
  if (name === 'uv') {
    const said = await pip(options, ['index', 'versions', name, '--disable-pip-version-check']);
    return /^Available versions: (.*)$/m.exec(said)?.[1]?.split(', ') ?? [];
  }
  const said = await npm(options, '/', ['view', npmPackages[name]?.package ?? name, 'versions', '--json']);
  return z.array(z.string()).parse(JSON.parse(said));
}

async function npm(options: ToolStoreOptions, cwd: string, args: readonly string[]): Promise<string> {
  const env = { ...options.hostEnv, npm_config_update_notifier: 'false' };
  return runProgram(options.node, [`${options.npm}/bin/npm-cli.js`, ...args], cwd, env);
}

async function pip(options: ToolStoreOptions, args: readonly string[]): Promise<string> {
  const program = await options.findProgram('python3');
  if (program === undefined) throw new Error('There is no Python on the host.');
  return runProgram(program, ['-m', 'pip', ...args], '/', options.hostEnv);
}

/** @param toolchain one that the command downloads, proves and runs as */
async function go(options: ToolStoreOptions, cwd: string, args: readonly string[], toolchain = 'local'): Promise<string> {
  const program = await options.findProgram('go');
  if (program === undefined) throw new Error('There is no Go on the host.');
  const env = {
    ...options.hostEnv,
    GOTOOLCHAIN: toolchain,
    GOFLAGS: '-mod=mod -modcacherw',
    GOWORK: 'off',
    ...(cwd === '/' ? {} : { GOMODCACHE: cwd }),
  };
  return runProgram(program, args, cwd, env);
}

async function runProgram(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const { stdout } = await run(program, [...args], {
    cwd,
    env: env as NodeJS.ProcessEnv,
    timeout: longestInstallMilliseconds,
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}
