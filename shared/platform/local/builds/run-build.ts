import { chown, mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import { type BuildOutput, createBuildOutput } from '#shared/platform/build-output.ts';
import type { BuildSpec } from '#shared/platform/builds.ts';
import type { RunBuild } from '#shared/platform/in-process-builds.ts';
import type { LocalDiskSpace } from '../disk/local-disk-space.ts';
import { measureContent, removeTree } from '../disk/trees.ts';
import type { Volume, Volumes } from '../disk/volumes.ts';
import { type LocalImages, type PlaceTree, type StoredImage, systemPath } from '../images/images.ts';
import type { Sandbox } from '../sandbox/open-sandbox.ts';
import type { RegistrySettings } from '../toolchains/registry-settings.ts';
import { resolveToolchain, type ToolchainPlaces } from '../toolchains/toolchain-mounts.ts';
import type { Toolchains } from '../toolchains/toolchains.ts';
import type { CacheVolume, LocalBuildCaches, ToolOwner } from './build-caches.ts';
import type { FullestVolume } from './build-causes.ts';
import { endLeftBuild } from './build-leftovers.ts';
import { type BuildDirectories, type BuildLimits, makeBuildDirectories } from './build-space.ts';
import { createStepRunner, type StepRunner } from './build-steps.ts';
import { chooseBuilders } from './builders/choose-builders.ts';
import { planApp } from './builders/plan-app.ts';
import { findDockerfile } from './containers/dockerfile.ts';
import type { ImageRegistries } from './containers/registries-conf.ts';
import { buildDockerfile } from './dockerfile-build.ts';
import { placeByCopy, placeUntouched, reportStored } from './image-storing.ts';
import type { BuildPlan, CachedTree, CachedTrees } from './plans/build-plan.ts';
import type { Builder } from './plans/builder.ts';
import type { CombinedPlan } from './plans/combine-plans.ts';
import { adviseOnCompose } from './plans/compose-advice.ts';
import { type DeclaredProcesses, findOwnCommands, readAppOverrides } from './plans/paas-file.ts';
import { openSourceTree, type SourceTree } from './plans/source-tree.ts';
import { readVersionPins } from './plans/version-pins.ts';
import { writeSource } from './source-writing.ts';

export interface RunBuildParts {
  /** Absolute. */
  readonly dataDir: string;
  readonly sandbox: Sandbox;
  readonly caches: LocalBuildCaches;
  readonly images: LocalImages;
  readonly toolchains: Toolchains;
  readonly registries: () => Promise<RegistrySettings>;
  readonly imageRegistries: ImageRegistries;
  readonly places: ToolchainPlaces;
  /** Whether this process is root, and so gives a build's files to the app's user. */
  readonly root: boolean;
  readonly diskSpace: LocalDiskSpace;
  /** Undefined where there are none: then builds are in directories of the disk that the platform uses. */
  readonly volumes: Volumes | undefined;
  readonly limits: BuildLimits;
}

/** A toolchain of Debian takes a minute to install. */
const installingNotice = 'Installing tools in the versions that the app asks for, once for all apps';
const installingNoticeMilliseconds = 3000;

type Succeeded = Awaited<ReturnType<RunBuild>>;

/** Builds in the sandbox on this machine. Ends first what is left of an earlier attempt at the same build. */
export function createRunBuild(parts: RunBuildParts): RunBuild {
  return async (spec, line, signal) => {
    const output = createBuildOutput(line, parts.limits);
    const base = `${parts.dataDir}/builds/${spec.buildId}`;
    await endLeftBuild(base, parts.sandbox);
    const mounting = parts.volumes?.mount({ file: `${base}/volume`, bytes: parts.limits.diskBytes, lasting: false });
    const mounted = mounting?.catch(() => undefined);
    const volume = await parts.caches.openVolume(spec.appId).catch(async (error: unknown) => {
      (await mounted)?.unmount();
      throw error;
    });
    let disk: Volume | undefined;
    const findFullestVolume = async (): Promise<FullestVolume | undefined> => {
      if (disk === undefined) return undefined;
      const [own, cached] = await Promise.all([disk.readUsedShare(), volume.readUsedShare()]);
      const message = cached > own ? fullCacheMessage : describeFullDisk(parts.limits.diskBytes);
      return { isFull: Math.max(own, cached) > 0.99, message };
    };
    try {
      disk = await mounting;
      return await build(parts, spec, { base, output, volume, disk, findFullestVolume, signal });
    } catch (error) {
      // A full cache would make every build fail.
      if (error instanceof BuildFailure && error.message === fullCacheMessage) await volume.trim(parts.limits.cacheBytes / 2);
      if ((error as NodeJS.ErrnoException | undefined)?.code !== 'ENOSPC') throw error;
      throw new BuildFailure((await findFullestVolume())?.message ?? fullPlatformMessage);
    } finally {
      disk?.unmount();
      await volume.release();
      await removeTree(base);
    }
  };
}

const fullPlatformMessage =
  "The platform's disk is full. Nothing is wrong with the app: its operator has to make room, then push again.";
const fullCacheMessage = 'The build cache is full. Its largest parts were dropped: push again.';

function describeFullDisk(bytes: number): string {
  return `The build needs more disk space or more files than it may have: ${Math.round(bytes / 1024 ** 2)} MiB for the app, /tmp and the home directory together.`;
}

/** A build needs room in the cache for what is new. */
function keptOfCache({ cacheBytes }: BuildLimits): number {
  return Math.floor(cacheBytes * 0.8);
}

interface Attempt {
  readonly base: string;
  readonly output: BuildOutput;
  readonly volume: CacheVolume;
  readonly disk: Volume | undefined;
  readonly findFullestVolume: () => Promise<FullestVolume | undefined>;
  readonly signal: AbortSignal;
}

async function build(parts: RunBuildParts, spec: BuildSpec, attempt: Attempt): Promise<Succeeded> {
  const { base, output, volume, disk, findFullestVolume, signal } = attempt;
  if (parts.sandbox.problem !== undefined)
    throw new BuildFailure(`Builds need the sandbox, and this platform has none. ${parts.sandbox.problem}`);
  const uid = await parts.sandbox.ensureUid(spec.appId);
  const owner = parts.root ? uid : undefined;
  const directories = await makeBuildDirectories(base, disk?.path ?? base, owner);
  const written = await writeSource(directories.app, spec.source.open(), { owner, longestBytes: parts.limits.slugBytes, signal });
  for (const path of written.leftOut) output.detail(`Left out ${path}: this symlink leads out of the source`);

  const source = openSourceTree(directories.app);
  const overrides = await readAppOverrides(source, spec.env);
  const { declared } = overrides;
  const dockerfile = await findDockerfile(source, overrides.builder, overrides.dockerfile);
  for (const line of await adviseOnCompose(source)) output.detail(line);
  if (dockerfile !== undefined) {
    const built = await buildDockerfile(parts, spec, { ...attempt, directories, source, uid, declared }, dockerfile);
    await trimCache(volume, parts.limits, output);
    return built;
  }
  const choice = await chooseBuilders(source, overrides.builder, overrides.start);
  const { builder } = choice.main;
  for (const { detection } of [...choice.before, choice.main, ...(choice.after ?? [])])
    output.step(`${detection.what} detected (${detection.why})`);
  const cache = spec.cacheState === 'Warm' ? ('warm' as const) : ('cold' as const);
  const registries = await parts.registries();
  const hasPythonMirror = registries.pythonIndex !== undefined;
  const context = {
    ...{ toolchains: parts.toolchains, env: spec.env, cache, hasPythonMirror },
    pins: await readVersionPins(source, spec.env, overrides),
    ownCommands: findOwnCommands(overrides),
    buildsItself: (overrides.install ?? overrides.build) !== undefined,
  };
  const notice = setTimeout(() => output.detail(installingNotice), installingNoticeMilliseconds);
  const plan = await planApp(source, choice, overrides, context).finally(() => clearTimeout(notice));
  const { main, combined } = plan;
  for (const note of plan.notes) output.detail(note);

  await writeHomeFiles(directories.home, registries.homeFiles);
  const giveTo = async (path: string): Promise<void> => (owner === undefined ? undefined : chown(path, owner, owner));
  const runner = createStepRunner({
    sandbox: parts.sandbox,
    directories,
    recordId: `build-${spec.buildId}`,
    uid,
    network: (await parts.sandbox.ensureNetwork(spec.appId))?.namespace,
    limits: parts.limits,
    diskSpace: parts.diskSpace,
    findFullestVolume,
    output,
    signal,
    env: {
      LANG: 'C.UTF-8',
      ...registries.env,
      ...combined.env,
      ...spec.env,
      ...(spec.commit === undefined ? {} : { SOURCE_VERSION: spec.commit }),
      HOME: '/home/app',
      TMPDIR: '/tmp',
      PATH: [...combined.path, ...systemPath].join(':'),
    },
    mounts: [
      { source: directories.app, target: '/app', writable: true },
      { source: directories.home, target: '/home/app', writable: true },
      ...(await resolveToolchain(combined.toolchain, parts.places)),
      ...registries.mounts,
      ...(await volume.mountTools(combined.cacheDirectories, giveTo)),
    ],
  });
  for (const each of plan.running) await runSteps(each, { volume, giveTo, output, runner, source, signal });
  await trimCache(volume, parts.limits, output);

  const processes = await discoverProcesses(main, { declared, builder, source, output });
  const unused = declared === undefined && plan.running.length === 1 ? (main.unusedBy?.(processes) ?? []) : [];
  if (unused.length > 0) await runner.runStep({ argv: ['/bin/rm', '-rf', '--', ...unused] });
  const place = (): PlaceTree =>
    runner.hasRun()
      ? placeByCopy(giveTo, (mount, to) => runner.copy({ mount, from: '/app', to }))
      : placeUntouched(directories.app);
  const image = await store(parts, spec, directories, {
    ...{ combined, builder, declared, processes, output, signal, disk },
    place: disk === undefined ? undefined : place(),
  });
  return {
    status: 'succeeded',
    imageUrl: image.imageUrl,
    digest: image.digest,
    processes,
    ...(declared?.releaseCommand === undefined ? {} : { releaseCommand: declared.releaseCommand }),
    builder: builder.name,
  };
}

async function writeHomeFiles(home: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(`${home}/${path}`), { recursive: true });
    await writeFile(`${home}/${path}`, text);
  }
}

interface StepsContext {
  readonly volume: CacheVolume;
  readonly giveTo: ToolOwner;
  readonly output: BuildOutput;
  readonly runner: StepRunner;
  readonly source: SourceTree;
  readonly signal: AbortSignal;
}

async function runSteps(plan: BuildPlan, context: StepsContext): Promise<void> {
  const { volume, giveTo, output, runner, source, signal } = context;
  const tree = plan.tree;
  const committed = tree !== undefined && (await source.list(tree.paths[0])).length > 0;
  if (committed)
    output.detail(`${tree.paths[0]} is part of the source, so the cached one is not used. Better leave it out of git.`);
  const restored = tree !== undefined && !committed && (await restoreTrees(tree, context));
  for (const path of plan.keptDirectories ?? [])
    if ((await source.list(path)).length === 0) await volume.restoreTree(keptTree(path), runner.copy);
  for (const step of plan.steps) {
    signal.throwIfAborted();
    if ((step.when === 'if-restored' && !restored) || (step.when === 'unless-restored' && restored)) continue;
    const reason = await step.skipIf?.(source);
    if (reason !== undefined) {
      output.detail(reason);
      continue;
    }
    output.detail(step.title);
    await runner.runStep(step);
    if (step.savesTree === true && tree !== undefined && !committed) await saveTrees(tree, context);
  }
  for (const path of plan.keptDirectories ?? []) {
    if ((await source.list(path)).length === 0) continue;
    await volume.saveTree(keptTree(path), runner.copy, giveTo);
    await runner.runStep({ argv: ['/bin/rm', '-rf', '--', path] });
  }
}

/** Kept whatever the source is: the framework knows what of it is still valid. */
function keptTree(path: string): CachedTree {
  return { path, key: 'kept' };
}

async function restoreTrees({ paths, key }: CachedTrees, { volume, runner }: StepsContext): Promise<boolean> {
  const [first, ...others] = paths;
  if (!(await volume.restoreTree({ path: first, key }, runner.copy))) return false;
  for (const path of others) await volume.restoreTree({ path, key }, runner.copy);
  return true;
}

/** The first one last: it stands for all. */
async function saveTrees({ paths, key }: CachedTrees, { volume, runner, giveTo, source }: StepsContext): Promise<void> {
  for (const path of paths.toReversed())
    if ((await source.list(path)).length > 0) await volume.saveTree({ path, key }, runner.copy, giveTo);
}

async function trimCache(volume: CacheVolume, limits: BuildLimits, output: BuildOutput): Promise<void> {
  const longestBytes = keptOfCache(limits);
  const dropped = await volume.trim(longestBytes);
  if (dropped.length === 0) return;
  output.detail(
    `The build cache was over ${(longestBytes / 1024 ** 3).toFixed(1)} GiB: dropped ${dropped.join(', ')}. The next build fetches them anew.`,
  );
}

interface ProcessDiscovery {
  readonly declared: DeclaredProcesses | undefined;
  readonly builder: Builder;
  readonly source: SourceTree;
  readonly output: BuildOutput;
}

async function discoverProcesses(
  plan: BuildPlan,
  { declared, builder, source, output }: ProcessDiscovery,
): Promise<Readonly<Record<string, string>>> {
  output.step('Discovering process types');
  const types = Object.keys(declared?.processes ?? {}).join(', ');
  if (declared !== undefined && types !== '') {
    output.detail(`${declared.from} declares types -> ${types}`);
    return declared.processes;
  }
  const processes = await plan.defaultProcesses(source);
  if (Object.keys(processes).length > 0)
    output.detail(`Default types for ${builder.name} -> ${Object.keys(processes).join(', ')}`);
  if (Object.keys(processes).length === 0) throw new BuildFailure(plan.processHint);
  return processes;
}

interface Built {
  readonly combined: CombinedPlan;
  readonly builder: Builder;
  readonly declared: DeclaredProcesses | undefined;
  readonly processes: Readonly<Record<string, string>>;
  readonly output: BuildOutput;
  readonly signal: AbortSignal;
  /** The file system of the build; undefined where it has none of its own. */
  readonly disk: Volume | undefined;
  /** How the app's files get into the image; undefined: they are moved. */
  readonly place: PlaceTree | undefined;
}

async function store(
  parts: RunBuildParts,
  spec: BuildSpec,
  directories: BuildDirectories,
  { combined, builder, declared, processes, output, signal, disk, place }: Built,
): Promise<StoredImage> {
  output.step('Storing the image');
  const description = {
    builder: builder.name,
    processes: { ...processes },
    ...(declared?.releaseCommand === undefined ? {} : { releaseCommand: declared.releaseCommand }),
    env: { ...combined.runtimeEnv },
    path: [...combined.path],
    toolchain: [...combined.toolchain],
  };
  signal.throwIfAborted();
  const longestBytes = parts.limits.slugBytes;
  // What is far too large is not copied first.
  const isFar = (bytes: number): boolean => bytes > 2 * longestBytes;
  const tooLarge = disk !== undefined && isFar(await disk.readUsedBytes()) && isFar(await measureContent(directories.app));
  const tree = place ?? ((target: string) => rename(directories.app, target));
  const stored = tooLarge ? undefined : await parts.images.storeImage(spec.appId, tree, description, longestBytes);
  if (stored === undefined) {
    throw new BuildFailure(
      `The built app is larger than ${(longestBytes / 1024 / 1024).toFixed(1)} MiB, the most an image may be. Leave out what it does not need to run.`,
    );
  }
  reportStored(output, stored);
  return stored;
}
