import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AppId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import type { InProcessBuilds } from '#shared/platform/in-process-builds.ts';
import { createLocalImages, type LocalImages, removeImageLeftovers } from '../images/images.ts';
import type { Sandbox } from '../sandbox/open-sandbox.ts';
import { readRegistrySettings } from '../toolchains/registry-settings.ts';
import type { PlatformPart } from '../toolchains/toolchain-mounts.ts';
import { openToolchains } from '../toolchains/toolchains.ts';
import { createLocalBuildCaches, type LocalBuildCaches, removeCacheRubbish } from './build-caches.ts';
import { removeLeftBuilds } from './build-leftovers.ts';
import type { BuildLimits } from './build-space.ts';
import { createLocalBuilds } from './builds.ts';

export interface BuildDriversOptions {
  /** Absolute. */
  readonly dataDir: string;
  readonly sandbox: Sandbox;
  /** The operator's environment: where the host's toolchains are (PATH) and how registries are reached. */
  readonly hostEnv: Readonly<Record<string, string | undefined>>;
  /** Whether builds of all tenants get the operator's credentials for package registries. By default they do not. */
  readonly shareRegistryCredentials?: boolean;
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

export function createBuildDrivers(options: BuildDriversOptions): BuildDrivers {
  const { dataDir, sandbox, hostEnv, shareRegistryCredentials = false, limits: changed } = options;
  const root = process.getuid?.() === 0;
  const ensureOwner = async (appId: AppId) => (root ? sandbox.ensureUid(appId) : undefined);
  const parts = findPlatformParts();
  const caches = createLocalBuildCaches(dataDir);
  const images = createLocalImages({ dataDir, parts: parts.paths, ensureOwner });
  return {
    caches,
    images,
    builds: createLocalBuilds({
      dataDir,
      sandbox,
      caches,
      images,
      toolchains: openToolchains(hostEnv, parts.nodeVersion),
      registries: () => readRegistrySettings({ env: hostEnv, shareCredentials: shareRegistryCredentials }),
      parts: parts.paths,
      root,
      limits: { ...limits.build, ...changed },
    }),
    async recover() {
      await removeLeftBuilds(dataDir, sandbox);
      await Promise.all([removeImageLeftovers(dataDir), removeCacheRubbish(dataDir)]);
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
      npm: dirname(require.resolve('npm/package.json')),
      'static-server': fileURLToPath(new URL('./builders/static-server.ts', import.meta.url)),
    },
    nodeVersion: version,
  };
}
