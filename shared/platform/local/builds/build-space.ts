import { chown, mkdir } from 'node:fs/promises';
import type { limits } from '#shared/limits.ts';

/** The limits of one build; units are in the names. */
export type BuildLimits = { readonly [Name in keyof typeof limits.build]: number };

/** Directories of a build on the host. */
export interface BuildDirectories {
  /** `builds/<build_id>`. */
  readonly base: string;
  readonly app: string;
  readonly home: string;
  readonly tmp: string;
}

/**
 * @param root the directory that they are created in: `base`, or the volume of the build
 * @param owner whom they are given to; undefined: they stay this process's
 */
export async function makeBuildDirectories(base: string, root: string, owner: number | undefined): Promise<BuildDirectories> {
  const directories = { base, app: `${root}/app`, home: `${root}/home`, tmp: `${root}/tmp` };
  for (const path of [directories.app, directories.home, directories.tmp]) {
    await mkdir(path, { recursive: true });
    if (owner !== undefined) await chown(path, owner, owner);
  }
  return directories;
}
