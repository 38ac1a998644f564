import type { ToolchainMount } from '../../toolchains/toolchain-mounts.ts';
import type { SourceTree } from './source-tree.ts';

/** What is run to build an app, and what its image then runs. */
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
