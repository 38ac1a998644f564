/**
 * Toolchains in versions that the host does not have. Each is installed once, from its package registry, which also proves its
 * hash (npm's integrity, Go's checksum database, Debian's signatures). Builds and apps see them read-only. Nothing of a tenant takes part in an
 * installation but a version, which has been looked up in the registry's list (decision 38).
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, utimes } from 'node:fs/promises';
import { millisecondsPerHour } from '#shared/durations.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import type { Log } from '#shared/log.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import { isDebianTool } from './debian/debian-tools.ts';
import { createDebianSource } from './sources/debian-source.ts';
import { createDebianSystems, type DebianSystems } from './sources/debian-systems.ts';
import { createGoSource } from './sources/go-source.ts';
import { createNpmSource, npmPackages } from './sources/npm-source.ts';
import { createPipSource } from './sources/pip-source.ts';
import { createRustupSource } from './sources/rustup-source.ts';
import type { SourceParts, ToolSource } from './sources/tool-source.ts';
import { createUvSource } from './sources/uv-source.ts';
import type { StoredTool, StoredToolName } from './stored-tools.ts';
import { requireRoom } from './tool-room.ts';
import { chooseVersion } from './versions.ts';

export interface ToolStore {
  /**
   * Versions that can be installed, in no order; those that are installed where the registry cannot be reached.
   * @param request what is asked for. Of tools without a list of all versions only this is looked up
   */
  listVersions(name: StoredToolName, request?: string): Promise<readonly string[]>;
  /** Installs it unless it is there. Returns its directory. @throws BuildFailure if it cannot be installed */
  ensureTool(tool: StoredTool): Promise<string>;
}

export interface ToolStoreOptions extends SourceParts {
  /** Absolute. */
  readonly directory: string;
  readonly log?: Log;
  /** Called after each installation, which is when the store grows. */
  readonly onInstalled?: () => void;
}

/** Removes what a crash left of installations. To be called before the first one. */
export async function removeHalfInstalledTools(directory: string): Promise<void> {
  for (const name of await readdir(directory).catch(ifMissing([] as string[])))
    if (name.startsWith('.new-')) await rm(`${directory}/${name}`, { recursive: true, force: true });
}

const listedForMilliseconds = millisecondsPerHour;
/** Of a release, or of a channel of Rust at a date. */
const exactVersion = /^(\d+\.\d+(\.\d+)?([-+.0-9A-Za-z]*)|(nightly|beta)-\d{4}-\d\d-\d\d)$/;

/** The store of a data directory. */
export function createToolStore(options: ToolStoreOptions): ToolStore & DebianSystems {
  const { directory } = options;
  const systems = createDebianSystems(options);
  const lists = new Map<string, { until: number; versions: Promise<readonly string[]> }>();
  const installing = new Map<string, Promise<string>>();
  const listInstalled = (name: StoredToolName): Promise<readonly string[]> =>
    readdir(`${directory}/${name}`).catch(ifMissing([] as string[]));
  const store: ToolStore & DebianSystems = {
    planSystem: systems.planSystem,
    async listVersions(name, request = '*') {
      const key = name === 'rust' ? `${name} ${request}` : name;
      const known = lists.get(key);
      if (known !== undefined && known.until > Date.now()) return known.versions;
      const versions = sourceOf(name)
        .listVersions(request)
        .catch(async (error: unknown) => {
          options.log?.warn('versions of a tool could not be listed', { tool: name, error });
          lists.delete(key);
          return listInstalled(name);
        });
      lists.set(key, { until: Date.now() + listedForMilliseconds, versions });
      return versions;
    },
    async ensureTool(tool) {
      if (!exactVersion.test(tool.version)) throw new BuildFailure(`${tool.version} is not a version of ${tool.name}.`);
      const place = `${directory}/${tool.name}/${tool.version}`;
      if ((await listInstalled(tool.name)).includes(tool.version)) {
        // When it was used last, for the collection of unused ones.
        await utimes(place, new Date(), new Date());
        return place;
      }
      const pending =
        installing.get(place) ?? install(options, tool, sourceOf(tool.name)).finally(() => installing.delete(place));
      installing.set(place, pending);
      return pending;
    },
  };
  return store;

  function sourceOf(name: StoredToolName): ToolSource {
    if (name === 'debian-system') return systems.source;
    if (isDebianTool(name)) return createDebianSource(options, name);
    switch (name) {
      case 'go':
        return createGoSource(options);
      case 'uv':
        return createPipSource(options, 'uv');
      case 'rust':
        return createRustupSource(options);
      case 'python':
        return createUvSource(options, findUv);
      default: {
        const found = npmPackages[name];
        if (found === undefined) throw new Error(`${name} has no source.`);
        return createNpmSource(options, found);
      }
    }
  }

  async function findUv(): Promise<string> {
    const version = chooseVersion('*', await store.listVersions('uv'));
    if (version === undefined) throw new Error('uv could not be found in its package registry.');
    return `${await store.ensureTool({ name: 'uv', version })}/bin/uv`;
  }
}

/** Into a directory beside it, which gets its name only when it is whole. */
async function install({ directory, log, onInstalled }: ToolStoreOptions, tool: StoredTool, source: ToolSource): Promise<string> {
  const place = `${directory}/${tool.name}/${tool.version}`;
  const staged = `${directory}/.new-${randomUUID()}`;
  await requireRoom(directory, tool.name);
  try {
    await mkdir(staged, { recursive: true, mode: 0o755 });
    const installed = await source.install(tool.version, staged);
    await mkdir(`${directory}/${tool.name}`, { recursive: true });
    await rename(installed, place).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error; // another process was faster
    });
    await utimes(place, new Date(), new Date());
    onInstalled?.();
    return place;
  } catch (error) {
    if (error instanceof BuildFailure) throw error;
    log?.warn('a tool could not be installed', { tool: tool.name, version: tool.version, error });
    const host = unreachableHost(error);
    const cause =
      host === undefined
        ? 'could not be installed from its package registry'
        : `could not be downloaded: ${host} could not be reached`;
    throw new BuildFailure(`${tool.name} ${tool.version} ${cause}. Try again, or ask for another version.`);
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
}

/** The host that a program of an installation says it could not reach. */
function unreachableHost(error: unknown): string | undefined {
  const text = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error);
  return /(?:error sending request for url \(|could not download file from '|reason: [^\n]{0,80}getaddrinfo \S{1,20} )(?:https?:\/\/)?([\w.-]{1,200})/.exec(
    text,
  )?.[1];
}
