import type { SourceTree } from '../plans/source-tree.ts';

/** Where people put it, in the order of preference. */
const names = ['Dockerfile', 'Containerfile'] as const;

/**
 * A Dockerfile at the top of the source comes before the detection of languages, unless the app names a builder or has a railpack.json,
 * which is a description of another build.
 * @param named the builder that the app names; 'dockerfile' asks for it
 * @param variable path in the app's variable PAAS_DOCKERFILE, for one that is elsewhere
 * @returns its path, relative to the source; undefined for an app that is built otherwise
 */
export async function findDockerfile(
  source: SourceTree,
  named: string | undefined,
  variable: string | undefined,
): Promise<string | undefined> {
  if (variable !== undefined) return variable;
  if (named !== undefined && named !== 'dockerfile') return undefined;
  if (named === undefined && (await source.hasFile('railpack.json'))) return undefined;
  for (const path of names) if (await source.hasFile(path)) return path;
  return undefined;
}
