import { readdir } from 'node:fs/promises';
import { ifMissing } from '#shared/files/if-missing.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import { measureTree } from '../disk/trees.ts';

const gibibyte = 1024 ** 3;

/**
 * What the store may take. Systems with the packages of one app have room of their own, so that they leave the other tools theirs.
 * Above `usual` the collection removes what nothing uses; above `most` nothing more is installed.
 */
export interface ToolRoom {
  readonly usual: number;
  readonly most: number;
}

/** By whether a tool is a system that was made for an app. */
const rooms = {
  systems: { usual: 4 * gibibyte, most: 8 * gibibyte },
  others: { usual: 10 * gibibyte, most: 20 * gibibyte },
} as const satisfies Record<string, ToolRoom>;

/** The room that a tool takes a part of. @param name 'node', or 'node/22.19.0' */
export function roomOf(name: string): keyof typeof rooms {
  return name.split('/')[0] === 'debian-system' ? 'systems' : 'others';
}

/** Bytes above which unused tools of a room go. */
export function usualBytes(room: keyof typeof rooms): number {
  return rooms[room].usual;
}

/** @throws BuildFailure when another tool of this name would take more than the store may take */
export async function requireRoom(directory: string, name: string, most = rooms[roomOf(name)].most): Promise<void> {
  const names = (await readdir(directory).catch(ifMissing([] as string[]))).filter((found) => !found.startsWith('.'));
  let bytes = 0;
  for (const found of names) if (roomOf(found) === roomOf(name)) bytes += await measureTree(`${directory}/${found}`);
  if (bytes <= most) return;
  throw new BuildFailure(
    'The platform has no room for another toolchain: builds of the last hour have asked for too many different ones. Try again in an hour.',
  );
}
