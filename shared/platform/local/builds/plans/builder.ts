/**
 * What a language needs to be built here: one file for each in this directory, listed in builders.ts. A builder only reads
 * the source and plans what is to be run; run-build.ts runs it, in the sandbox and within limits.
 */
import type { Toolchains } from '../../toolchains/toolchains.ts';
import type { BuildPlan } from './build-plan.ts';
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
