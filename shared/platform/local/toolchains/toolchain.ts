import type { ToolchainMount } from './toolchain-mounts.ts';

/** Something that programs of one version are in. */
export interface Toolchain {
  readonly version: string;
  /** Directories of its programs, for PATH. */
  readonly path: readonly string[];
  readonly mounts: readonly ToolchainMount[];
}

export interface NodeToolchain extends Toolchain {
  /** Directory that has its headers at include/node, for native addons. */
  readonly headers: string | undefined;
}

export interface PythonToolchain extends Toolchain {
  readonly executable: string;
  /** Whether its own pip can install into another environment, which spares each one a copy of pip. */
  readonly pip: boolean;
}

export interface JavaToolchain extends Toolchain {
  /** For JAVA_HOME. */
  readonly home: string;
}

/** A version that an app asks for. */
export interface VersionRequest {
  /** As it was written: '22', '>=18 <23', 'lts/*', '1.25.3'. */
  readonly version: string;
  /** Where: '"engines" in package.json', '.nvmrc'. */
  readonly source: string;
}
