/**
 * What a language needs to be built here: one file for each in this directory, listed in builders.ts. A builder only reads
 * the source and plans what is to be run; run-build.ts runs it, in the sandbox and within limits.
 */
import type { ToolchainMount } from '../../toolchains/toolchain-mounts.ts';
import type { Toolchains } from '../../toolchains/toolchains.ts';
import type { SourceTree } from './source-tree.ts';
import type { VersionPins } from './version-pins.ts';

export interface Builder {
  /** Name in `BuildOutcome.builder`. */
  readonly name: string;
  /** What detection goes by, for the person whose source nothing was found in: 'package.json (Node.js)'. */
  readonly looksFor: string;
  /** Its toolchain may be a system of Debian's packages, whose /usr is seen in place of the host's. */
  readonly replacesSystem?: boolean;
  detect(source: SourceTree): Promise<Detection | undefined>;
  /** @throws BuildFailure when it can be told before running anything that this cannot work */
  plan(source: SourceTree, context: BuildContext): Promise<BuildPlan>;
}

export interface Detection {
  /** 'Node.js app' */
  readonly what: string;
  /** The file it was told by: 'package.json' */
  readonly why: string;
}

export interface BuildContext {
  readonly toolchains: Toolchains;
  /** The app's variables. Secret. */
  readonly env: Readonly<Record<string, string>>;
  readonly cache: 'cold' | 'warm';
  /** Versions that the app asks for elsewhere than in its language's manifest. */
  readonly pins: VersionPins;
  /** Commands that the app itself declares, of process types and of releases: by a Procfile, paas.yml or a variable. Empty: the builder finds what runs. */
  readonly ownCommands: readonly string[];
  /** Whether the app itself says by which commands it is built. */
  readonly buildsItself: boolean;
  /** Whether builds are to get Python packages from an index of the operator's instead of PyPI. */
  readonly hasPythonMirror?: boolean;
}

export interface BuildPlan {
  /** Said right after detection: 'Using Node.js 22.1.0 (package.json asks for 22.x)'. */
  readonly notes: readonly string[];
  readonly steps: readonly BuildStep[];
  /** For all steps, below the app's own variables. PATH entries go to `path`. */
  readonly env: Readonly<Record<string, string>>;
  /** Directories before the system's on PATH, in builds and at run time. */
  readonly path: readonly string[];
  readonly toolchain: readonly ToolchainMount[];
  /** Names of directories of the cache volume, writable at `/cache/<name>` for tools that keep their own caches. */
  readonly cacheDirectories: readonly string[];
  /** Directories of the app that are put back when their key is the one they were saved under. */
  readonly tree?: CachedTrees;
  /** Directories of the app, such as `.next/cache`, that each build gets as the last one left them. They are no part of the image. */
  readonly keptDirectories?: readonly string[];
  /** Directories of the app that none of its processes needs, and that are no part of the image. For apps without a Procfile. */
  unusedBy?(processes: Readonly<Record<string, string>>): readonly string[];
  /** Packages of Debian that dependencies of the app need, in builds and at run time. */
  readonly systemPackages?: readonly string[];
  /** At run time, below the app's own variables. */
  readonly runtimeEnv: Readonly<Record<string, string>>;
  /** What runs when the Procfile declares no such type. Called after the steps; may be empty. */
  defaultProcesses(built: SourceTree): Promise<Readonly<Record<string, string>>>;
  /** What to do when there are no process types at all. */
  readonly processHint: string;
}

export interface BuildStep {
  /** Detail line before it runs: 'npm ci, cache warm'. */
  readonly title: string;
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** 'if-restored' and 'unless-restored' look at the plan's `tree`. */
  readonly when?: 'if-restored' | 'unless-restored';
  /** The plan's tree is complete after this step and goes into the cache. */
  readonly savesTree?: boolean;
  /** It is what a build command of the app takes the place of. */
  readonly builds?: true;
  /** Called right before the step: why it is to be left out, for the log. */
  readonly skipIf?: (built: SourceTree) => Promise<string | undefined>;
}

export interface CachedTrees {
  /** Relative to the app. The first one makes the set complete; others may be missing: 'node_modules', 'packages/a/node_modules'. */
  readonly paths: readonly [string, ...string[]];
  /** Everything their content follows from. */
  readonly key: string;
}

/** One of them in the cache. */
export interface CachedTree {
  /** Relative to the app: 'node_modules'. */
  readonly path: string;
  /** Everything its content follows from. */
  readonly key: string;
}
