import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AppId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import type { Log } from '#shared/log.ts';
import type { BuildRunner } from '#shared/platform/builds.ts';
import { createLocalImages, type LocalImages, removeImageRubbish } from '../images/images.ts';
import type { Sandbox } from '../sandbox/open-sandbox.ts';
import { createLocalBuildCaches, type LocalBuildCaches, removeCacheRubbish } from './build-caches.ts';
import { type BuildLimits, createLocalBuildRunner, removeLeftBuilds } from './build-runner.ts';
import type { PlatformPart } from './builders/builder.ts';
import { readRegistrySettings } from './builders/registry-settings.ts';
import { openToolchains } from './builders/toolchains.ts';

export interface LocalBuildsOptions {
  /** Absolute. */
  readonly dataDir: string;
  readonly log: Log;
  readonly sandbox: Sandbox;
  /** The operator's environment: where the host's toolchains are (PATH) and how registries are reached. */
  readonly hostEnv: Readonly<Record<string, string | undefined>>;
  /** Smaller ones for tests. */
  readonly limits?: Partial<BuildLimits>;
}

export interface LocalBuilds {
  readonly caches: LocalBuildCaches;
  readonly builds: BuildRunner;
  readonly images: LocalImages;
  /** Ends and removes what a crash left. To be called once, before the first build. */
  recover(): Promise<void>;
}

export function createLocalBuilds({ dataDir, log, sandbox, hostEnv, limits: changed }: LocalBuildsOptions): LocalBuilds {
  const root = process.getuid?.() === 0;
  const ensureOwner = async (appId: AppId) => (root ? sandbox.ensureUid(appId) : undefined);
  const parts = findPlatformParts();
  const caches = createLocalBuildCaches(dataDir);
  const images = createLocalImages({ dataDir, parts: parts.paths, ensureOwner });
  return {
    caches,
    images,
    builds: createLocalBuildRunner({
      dataDir,
      log,
      sandbox,
      caches,
      images,
      toolchains: openToolchains(hostEnv, parts.nodeVersion),
      registries: () => readRegistrySettings(hostEnv),
      parts: parts.paths,
      root,
      limits: { ...limits.build, ...changed },
    }),
    async recover() {
      await removeLeftBuilds(dataDir, sandbox);
      await Promise.all([removeImageRubbish(dataDir), removeCacheRubbish(dataDir)]);
    },
  };
}

/** The Node that the platform brings along, and npm for it. */
function findPlatformParts(): { paths: Readonly<Record<PlatformPart, string>>; nodeVersion: string } {
  const require = createRequire(import.meta.url);
  const manifest = require.resolve('node/package.json');
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
