import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import type { Platform } from '#shared/platform/platform.ts';
import type { Router } from '#shared/routing/router.ts';
import type { SecretBox } from '#shared/secret-box.ts';
import { createLocalAddons } from './addons/local-addons.ts';
import { createLocalAppEnvironments } from './app-environments.ts';
import { createBuildDrivers } from './builds/build-drivers.ts';
import { findContainerProblem } from './builds/containers/find-buildah.ts';
import type { ImageRegistries } from './builds/containers/registries-conf.ts';
import { createLocalCertificates } from './certificates.ts';
import { createLocalDiskSpace } from './disk/local-disk-space.ts';
import { openVolumes } from './disk/volumes.ts';
import { openNetworks } from './network/networks.ts';
import { openSandbox } from './sandbox/open-sandbox.ts';
import { createSandboxedPrograms } from './workloads/sandboxed-programs.ts';
import { createLocalWorkloads } from './workloads/workloads.ts';

/** What the machine offers. */
export interface LocalPlatformOptions {
  /** Absolute. */
  dataDir: string;
  /** Of a running gateway. */
  router: Router;
  secretBox: SecretBox;
  clock: Clock;
  log: Log;
  /** IPv4 range from which apps get addresses, and networks that they may reach although they are private. */
  appNetwork: { range: string; allowed: readonly string[] };
  /** Whether builds of all tenants get the operator's credentials for package registries. */
  shareRegistryCredentials: boolean;
  /** How registries of container images are reached. */
  imageRegistries: ImageRegistries;
  /** The operator's environment: where tools are (PATH) and how package registries are reached. */
  hostEnv: Readonly<Record<string, string | undefined>>;
  /** What builds leave free of the data directory's disk; undefined: by its size. */
  diskReserveBytes?: number | undefined;
  /** The most that an image, or the source of a build, may have; undefined: the usual. */
  imageBytes?: number | undefined;
}

/** The ports, and how the machine is left. */
export interface LocalPlatform extends Platform {
  /** Ends every build and every app process, then the servers they use. */
  stop(): Promise<void>;
  /** Ends the builds, which die with this process anyway, and leaves the rest running for the next control plane. */
  detach(): Promise<void>;
}

/** Runs everything on this machine. What an earlier control plane left running has been taken over when it resolves. */
export async function createLocalPlatform({
  dataDir,
  router,
  secretBox,
  clock,
  log,
  appNetwork,
  shareRegistryCredentials,
  imageRegistries,
  hostEnv,
  diskReserveBytes,
  imageBytes,
}: LocalPlatformOptions): Promise<LocalPlatform> {
  const path = hostEnv['PATH'] ?? '';
  const opened = await openNetworks({ dataDir, path, range: appNetwork.range, allowedNetworks: appNetwork.allowed });
  const networks = opened.problem === undefined ? opened : undefined;
  const sandbox = await openSandbox({ dataDir, path, networks });
  const volumes = await openVolumes(dataDir);
  const diskSpace = createLocalDiskSpace(dataDir, diskReserveBytes);
  const { caches, builds, images, recover } = createBuildDrivers({
    dataDir,
    sandbox,
    volumes,
    hostEnv,
    shareRegistryCredentials,
    imageRegistries,
    limits: omitUndefined({ slugBytes: imageBytes }),
    diskSpace,
    log,
  });
  const programs = createSandboxedPrograms({ sandbox, networks: networks?.instances, readImage: images.readImage });
  const local = await createLocalWorkloads({ dataDir, router, programs, secretBox, clock, log });
  const addons = createLocalAddons({ dataDir, sandbox, networks, path, clock, log });
  await Promise.all([recover(), addons.adopt()]);
  // Apps use the add-ons' servers, so these are started first.
  await local.adopt();
  const problem = sandbox.problem ?? opened.problem;
  if (sandbox.problem === undefined && !sandbox.layers)
    log.warn(
      'apps cannot write to /app here: the kernel gives this user no overlays. Run the platform as root, or on Linux 5.11 or later.',
    );
  const containerProblem = await findContainerProblem();
  if (containerProblem !== undefined) log.info('apps with a Dockerfile cannot be built here', { problem: containerProblem });
  if (volumes.problem !== undefined)
    log.warn('the disk space of single builds and caches is not limited here; builds end when the disk is nearly full', {
      problem: volumes.problem,
    });
  return {
    capabilities: {
      pipeline: 'local',
      sandbox: problem === undefined,
      sandboxProblem: problem,
    },
    caches,
    builds,
    images,
    workloads: local.workloads,
    rollouts: local.rollouts,
    logs: local.logs,
    metrics: local.metrics,
    addons,
    diskSpace,
    certificates: createLocalCertificates(router),
    appEnvironments: createLocalAppEnvironments({ sandbox, networks }),
    async stop() {
      await builds.stop();
      await volumes.close();
      await local.stopAll();
      await addons.stopAll();
      await networks?.deleteAll();
    },
    async detach() {
      await Promise.all([builds.stop(), local.detach(), addons.detach()]);
      await volumes.close();
    },
  };
}
