/** Removes tools of the store that no image needs and that no build has used lately. They are installed again when one asks for them. */
import { randomUUID } from 'node:crypto';
import { readdir, rename, stat } from 'node:fs/promises';
import { millisecondsPerDay, millisecondsPerHour } from '#shared/durations.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import { measureTree, removeTree } from '../disk/trees.ts';
import { roomOf, usualBytes } from './tool-room.ts';

export interface ToolCollection {
  /** Of the store. */
  readonly directory: string;
  /** What images run with: 'node/22.19.0'. */
  listNeeded(): Promise<ReadonlySet<string>>;
  /** What each room may use before tools go that were used less than `unusedMilliseconds` ago. Default: see `usualBytes`. */
  readonly longestBytes?: number;
  /** After which a tool goes that nothing has used. */
  readonly unusedMilliseconds?: number;
}

const defaultMilliseconds = 30 * millisecondsPerDay;
/** A tool may be used by a build that has not made its image yet: longer than a build takes. */
const leastMilliseconds = millisecondsPerHour;

interface Found {
  /** 'node/22.19.0' */
  readonly name: string;
  readonly path: string;
  readonly unusedMilliseconds: number;
}

/** @returns names of the removed ones, least recently used first */
export async function collectTools(collection: ToolCollection, now: number = Date.now()): Promise<readonly string[]> {
  const { directory, longestBytes, unusedMilliseconds = defaultMilliseconds } = collection;
  const found = await listTools(directory, now);
  const needed = await collection.listNeeded();
  const removable = found
    .filter((tool) => !needed.has(tool.name) && tool.unusedMilliseconds > leastMilliseconds)
    .sort((one, other) => other.unusedMilliseconds - one.unusedMilliseconds);
  if (removable.length === 0) return [];
  const sizes = new Map<string, number>();
  const bytes = { systems: 0, others: 0 };
  for (const { name, path } of found) {
    const size = await measureTree(path);
    sizes.set(name, size);
    bytes[roomOf(name)] += size;
  }
  const removed: string[] = [];
  for (const tool of removable) {
    const room = roomOf(tool.name);
    if (tool.unusedMilliseconds <= unusedMilliseconds && bytes[room] <= (longestBytes ?? usualBytes(room))) continue;
    bytes[room] -= sizes.get(tool.name) ?? 0;
    // Renamed first, so that no half of it is left under its name.
    const discarded = `${directory}/.new-${randomUUID()}`;
    await rename(tool.path, discarded);
    await removeTree(discarded);
    removed.push(tool.name);
  }
  return removed;
}

async function listTools(directory: string, now: number): Promise<readonly Found[]> {
  const names = (await readdir(directory).catch(ifMissing([] as string[]))).filter((name) => !name.startsWith('.'));
  const tools = names.map(async (name) => {
    const versions = await readdir(`${directory}/${name}`);
    return Promise.all(
      versions.map(async (version) => {
        const path = `${directory}/${name}/${version}`;
        return { name: `${name}/${version}`, path, unusedMilliseconds: now - (await stat(path)).mtimeMs };
      }),
    );
  });
  return (await Promise.all(tools)).flat();
}
