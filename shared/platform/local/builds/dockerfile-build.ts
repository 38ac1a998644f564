import { chown } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { omitUndefined } from '#shared/omit-undefined.ts';
import { chooseBuildArguments } from '#shared/platform/build-arguments.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { BuildOutput } from '#shared/platform/build-output.ts';
import type { BuildOutcome, BuildSpec } from '#shared/platform/builds.ts';
import type { LocalDiskSpace } from '../disk/local-disk-space.ts';
import type { LocalImages } from '../images/images.ts';
import type { Sandbox } from '../sandbox/open-sandbox.ts';
import type { RegistrySettings } from '../toolchains/registry-settings.ts';
import type { ToolchainPlaces } from '../toolchains/toolchain-mounts.ts';
import type { CacheVolume } from './build-caches.ts';
import type { FullestVolume } from './build-causes.ts';
import type { BuildDirectories, BuildLimits } from './build-space.ts';
import { createStepRunner } from './build-steps.ts';
import { type ContainerBuild, makeContainerImage } from './container-build.ts';
import { containerCache, planImageBuild, toolTargets } from './containers/buildah.ts';
import { findBuildah } from './containers/find-buildah.ts';
import type { ImageRegistries } from './containers/registries-conf.ts';
import { reportStored } from './image-storing.ts';
import type { DeclaredProcesses } from './plans/paas-file.ts';
import type { SourceTree } from './plans/source-tree.ts';

/** What of the platform a build of a container image needs. */
export interface ContainerBuildParts {
  readonly sandbox: Sandbox;
  readonly images: LocalImages;
  readonly registries: () => Promise<RegistrySettings>;
  readonly imageRegistries: ImageRegistries;
  readonly places: ToolchainPlaces;
  readonly diskSpace: LocalDiskSpace;
  readonly limits: BuildLimits;
}

/** A build whose source is written. */
export interface ContainerAttempt {
  readonly directories: BuildDirectories;
  readonly source: SourceTree;
  readonly declared: DeclaredProcesses | undefined;
  readonly output: BuildOutput;
  readonly volume: CacheVolume;
  readonly uid: number;
  readonly findFullestVolume: () => Promise<FullestVolume | undefined>;
  readonly signal: AbortSignal;
}

type Succeeded = Extract<BuildOutcome, { status: 'succeeded' }>;

/**
 * Builds an app from its Dockerfile.
 * @param path of the Dockerfile, relative to the source
 * @throws BuildFailure with what failed and how to fix it
 */
export async function buildDockerfile(
  parts: ContainerBuildParts,
  spec: BuildSpec,
  attempt: ContainerAttempt,
  path: string,
): Promise<Succeeded> {
  const { source, output, signal } = attempt;
  output.step(`Dockerfile detected (${path})`);
  const text = await source.readText(path);
  if (text === undefined)
    throw new BuildFailure(`There is no ${path} in the source, which the variable PAAS_DOCKERFILE or paas.yml names.`);
  await findBuildah();
  const registries = await parts.registries();
  const build = await openContainerBuild(parts, spec, attempt, registries);
  const variables = { ...spec.env, ...(spec.commit === undefined ? {} : { SOURCE_VERSION: spec.commit }) };
  const step = planImageBuild(path, chooseBuildArguments(text, variables), registries.env);
  const image = await makeContainerImage(build, step, {
    builder: 'dockerfile',
    declared: attempt.declared,
  });
  signal.throwIfAborted();
  output.step('Storing the image');
  const stored = await parts.images.storeImage(spec.appId, image.place, image.description, parts.limits.slugBytes);
  if (stored === undefined) throw new BuildFailure('The image grew while it was stored. Push again.');
  reportStored(output, stored);
  const { processes, releaseCommand, builder } = image.description;
  return {
    ...{ status: 'succeeded', imageUrl: stored.imageUrl, digest: stored.digest, processes, builder },
    ...omitUndefined({ releaseCommand }),
  };
}

async function openContainerBuild(
  parts: ContainerBuildParts,
  spec: BuildSpec,
  { directories, output, volume, uid, findFullestVolume, signal }: ContainerAttempt,
  registries: RegistrySettings,
): Promise<ContainerBuild> {
  const config = `${directories.base}/containers`;
  const runner = createStepRunner({
    ...{ sandbox: parts.sandbox, limits: parts.limits, diskSpace: parts.diskSpace },
    ...{ directories, uid, findFullestVolume, output, signal },
    recordId: `build-${spec.buildId}`,
    network: (await parts.sandbox.ensureNetwork(spec.appId))?.namespace,
    env: {},
    container: { kind: 'tools', users: await parts.sandbox.ensureUsers(spec.appId) },
    mounts: [
      { source: directories.app, target: '/app', writable: true },
      { source: directories.home, target: '/home/app', writable: true },
      // buildah reads its own images by files there, and builds everything anew where it cannot.
      { source: directories.tmp, target: '/var/tmp', writable: true },
      // Names without a registry, such as node:22, are looked up in a file that it makes there.
      { source: directories.tmp, target: '/var/cache', writable: true },
      { source: parts.places.parts.node, target: toolTargets.node },
      { source: fileURLToPath(new URL('./containers/keep-times.ts', import.meta.url)), target: toolTargets.keepTimes },
      { source: config, target: toolTargets.config },
      ...registries.mounts,
      ...(await volume.mountTools([containerCache], (directory) => chown(directory, uid, uid))),
    ],
  });
  return {
    ...{ runner, output, config, home: directories.home, owner: uid, longestBytes: parts.limits.slugBytes },
    registries: parts.imageRegistries,
    credentials: spec.env['DOCKER_AUTH_CONFIG'],
  };
}
