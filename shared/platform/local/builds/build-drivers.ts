import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findExecutable } from '#shared/files/find-executable.ts';
import type { AppId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import type { Log } from '#shared/log.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import type { InProcessBuilds } from '#shared/platform/in-process-builds.ts';
import { createLocalDiskSpace, type LocalDiskSpace } from '../disk/local-disk-space.ts';
import type { Volumes } from '../disk/volumes.ts';
import { createLocalImages, type LocalImages, removeImageLeftovers } from '../images/images.ts';
import { listNeededTools } from '../images/needed-tools.ts';
import type { Sandbox } from '../sandbox/open-sandbox.ts';
import { readRegistrySettings } from '../toolchains/registry-settings.ts';
import { createToolCollector } from '../toolchains/tool-collector.ts';
import { createToolStore, removeHalfInstalledTools } from '../toolchains/tool-store.ts';
import type { PlatformPart } from '../toolchains/toolchain-mounts.ts';
import { openToolchains } from '../toolchains/toolchains.ts';
import { createLocalBuildCaches, type LocalBuildCaches, removeCacheRubbish } from './build-caches.ts';
import { removeLeftBuilds } from './build-leftovers.ts';
import type { BuildLimits } from './build-space.ts';
import { createLocalBuilds } from './builds.ts';
import type { ImageRegistries } from './containers/registries-conf.ts';

export interface BuildDriversOptions {
  /** Absolute. */
  readonly dataDir: string;
  readonly sandbox: Sandbox;
  /** What limits the disk space of builds and caches; left out: nothing does but the free space of the disk. */
  readonly volumes?: Volumes;
  /** The operator's environment: where the host's toolchains are (PATH) and how registries are reached. */
  readonly hostEnv: Readonly<Record<string, string | undefined>>;
  /** Whether builds of all tenants get the operator's credentials for package registries. By default they do not. */
  readonly shareRegistryCredentials?: boolean;
  /** How registries of container images are reached; left out: by HTTPS, each at its own address. */
  readonly imageRegistries?: ImageRegistries;
  readonly log?: Log;
  /** Left out: that of the data directory. */
  readonly diskSpace?: LocalDiskSpace;
  /** Smaller ones for tests. */
  readonly limits?: Partial<BuildLimits>;
}

/** The drivers that work on one another's files: a build fills the cache and makes the image. */
export interface BuildDrivers {
  readonly caches: LocalBuildCaches;
  readonly builds: InProcessBuilds;
  readonly images: LocalImages;
  /** Ends and removes what a crash left. To be called once, before the first build. */
  recover(): Promise<void>;
}

/** The drivers of builds, caches and images on this machine, which share directories and limits. */
export function createBuildDrivers(options: BuildDriversOptions): BuildDrivers {
  const { dataDir, sandbox, hostEnv, shareRegistryCredentials = false, limits: changed, log, diskSpace } = options;
  const volumes = options.volumes?.problem === undefined ? options.volumes : undefined;
  const root = process.getuid?.() === 0;
  const ensureOwner = async (appId: AppId) => (root ? sandbox.ensureUid(appId) : undefined);
  const parts = findPlatformParts();
  const buildLimits = { ...limits.build, ...changed };
  const caches = createLocalBuildCaches(dataDir, volumes && { volumes, bytes: buildLimits.cacheBytes });
  const toolsDirectory = `${dataDir}/toolchains`;
  const findProgram = async (name: string): Promise<string | undefined> => findExecutable(name, hostEnv['PATH'] ?? '');
  const { node, npm } = parts.paths;
  const collectUnused = createToolCollector({ directory: toolsDirectory, listNeeded: () => listNeededTools(dataDir) }, log);
  const store = createToolStore(
    omitUndefined({ directory: toolsDirectory, hostEnv, node, npm, findProgram, log, onInstalled: () => void collectUnused() }),
  );
  const places = { parts: parts.paths, store };
  const images = createLocalImages({ dataDir, places, ensureOwner, ensureUsers: sandbox.ensureUsers });
  return {
    caches,
    images,
    builds: createLocalBuilds({
      dataDir,
      sandbox,
      caches,
      images,
      toolchains: openToolchains({ env: hostEnv, platformNodeVersion: parts.nodeVersion, store, systems: store }),
      registries: () => readRegistrySettings({ env: hostEnv, shareCredentials: shareRegistryCredentials }),
      imageRegistries: options.imageRegistries ?? { mirrors: {}, insecure: [] },
      places,
      root,
      diskSpace: diskSpace ?? createLocalDiskSpace(dataDir),
      volumes,
      limits: buildLimits,
    }),
    async recover() {
      await removeLeftBuilds(dataDir, sandbox);
      await Promise.all([removeImageLeftovers(dataDir), removeCacheRubbish(dataDir), removeHalfInstalledTools(toolsDirectory)]);
      await collectUnused();
    },
  };
}

/** The Node that the platform brings along, and npm for it. */
function findPlatformParts(): { paths: Readonly<Record<PlatformPart, string>>; nodeVersion: string } {
  const require = createRequire(import.meta.url);
  const manifest = require.resolve(`node-${process.platform}-${process.arch}/package.json`);
  const { version } = require(manifest) as { version: string };
  return {
    paths: {
      node: `${dirname(manifest)}/bin/node`,
      'node-headers': `${dirname(manifest)}/include`,
      npm: dirname(require.resolve('npm/package.json')),
      'static-server': fileURLToPath(new URL('./static-server', import.meta.url)),
      'php-server': fileURLToPath(new URL('./php-server', import.meta.url)),
    },
    nodeVersion: version,
  };
}
