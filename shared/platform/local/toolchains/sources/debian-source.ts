import { rm } from 'node:fs/promises';
import type { Log } from '#shared/log.ts';
import { type DebianArchive, openDebianArchive, readDebianMirrors } from '../debian/debian-archive.ts';
import { unpackDebianRoot } from '../debian/debian-roots.ts';
import { type DebianToolName, offersOf, toSemver } from '../debian/debian-tools.ts';
import type { SourceParts, ToolSource } from './tool-source.ts';

export interface DebianSourceParts extends Pick<SourceParts, 'hostEnv'> {
  /** Of the tool store, absolute. The lists of packages are below it. */
  readonly directory: string;
  readonly log?: Log;
}

export interface Candidate {
  readonly version: string;
  readonly codename: string;
  readonly packages: readonly string[];
  readonly archive: DebianArchive;
}

/**
 * A language of releases of Debian. Versions have Debian's revision as build metadata: '3.1.2+7.deb12u1'. There are none where the host
 * gets no packages from Debian.
 */
export function createDebianSource(parts: DebianSourceParts, tool: DebianToolName): ToolSource {
  return {
    listVersions: async () => (await findCandidates(parts, tool)).map(({ version }) => version),
    async install(version, directory) {
      const candidate = (await findCandidates(parts, tool)).find((found) => found.version === version);
      if (candidate === undefined) throw new Error(`No release of Debian has ${tool} ${version}.`);
      const archives = `${directory}/archives`;
      await unpackDebianRoot(await candidate.archive.download(candidate.packages, archives), directory);
      await rm(archives, { recursive: true });
      return directory;
    },
  };
}

/** All versions of a toolchain that releases of Debian have. */
export async function findCandidates(
  { directory, hostEnv, log }: DebianSourceParts,
  tool: DebianToolName,
): Promise<readonly Candidate[]> {
  const mirrors = await readDebianMirrors(hostEnv);
  if (mirrors.size === 0) return [];
  const found = offersOf(tool).map(async ({ codename, main, others }): Promise<readonly Candidate[]> => {
    const lists = `${directory}/.debian/${codename}`;
    const archive = openDebianArchive(lists, codename, mirrors, hostEnv);
    try {
      const candidates = await inTurn(lists, () => archive.readCandidates([main, ...others]));
      const version = toSemver(candidates.get(main) ?? '');
      return version === undefined ? [] : [{ version, codename, packages: [...candidates.keys()], archive }];
    } catch (error) {
      log?.warn('the packages of a Debian release could not be listed', { release: codename, error });
      return [];
    }
  });
  return (await Promise.all(found)).flat();
}

const turns = new Map<string, Promise<unknown>>();

/** apt locks its lists: one at a time. */
export function inTurn<T>(lists: string, work: () => Promise<T>): Promise<T> {
  const turn = (turns.get(lists) ?? Promise.resolve()).then(work, work);
  turns.set(lists, turn);
  return turn;
}
