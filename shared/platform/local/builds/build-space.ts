import { chown, mkdir } from 'node:fs/promises';
import type { limits } from '#shared/limits.ts';

/** The limits of one build; units are in the names. */
export type BuildLimits = { readonly [Name in keyof typeof limits.build]: number };

/** Directories of a build on the host, below `builds/<build_id>`. */
export interface BuildDirectories {
  readonly base: string;
  readonly app: string;
  readonly home: string;
  readonly tmp: string;
}

/** @param owner whom they are given to; undefined: they stay this process's */
export async function makeBuildDirectories(base: string, owner: number | undefined): Promise<BuildDirectories> {
  const directories = { base, app: `${base}/app`, home: `${base}/home`, tmp: `${base}/tmp` };
  for (const path of [directories.app, directories.home, directories.tmp]) {
    await mkdir(path, { recursive: true });
    if (owner !== undefined) await chown(path, owner, owner);
  }
  return directories;
}
