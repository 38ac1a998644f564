import { readBuildArguments } from '#shared/platform/build-arguments.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { SourceAccess, SourceEntry } from '#shared/platform/builds.ts';
import { type Procfile, parseProcfile } from '#shared/platform/procfile.ts';
import { readAtMost } from '#shared/read-at-most.ts';

/** What decides how a source is built, and what its image runs. */
export interface SourceFacts {
  procfile: Procfile | undefined;
  /** Undefined for a source that buildpacks build. */
  dockerfile: DockerfileFacts | undefined;
}

/** A Dockerfile of the source. */
export interface DockerfileFacts {
  /** Relative to the source. */
  path: string;
  /** Names of the ARG instructions. */
  arguments: readonly string[];
}

const names = ['Dockerfile', 'Containerfile'];
const longestFile = 128 * 1024;

/**
 * Reads the few files at the top of a source that say how it is built. Buildpacks see the source itself; the Procfile is read
 * here, too, so that the types of an app do not depend on the builder image.
 * @param dockerfile the app's variable PAAS_DOCKERFILE: the path of a Dockerfile elsewhere
 * @throws BuildFailure for a Procfile that is wrong, and for a Dockerfile that is missing
 */
export async function readSourceFacts(source: Pick<SourceAccess, 'open'>, dockerfile?: string): Promise<SourceFacts> {
  const wanted = new Set(['Procfile', ...(dockerfile === undefined ? names : [dockerfile])]);
  const last = [...wanted].toSorted().at(-1) ?? '';
  const found = new Map<string, string>();
  for await (const entry of source.open()) {
    // In path order: nothing that is wanted comes behind this.
    if (entry.path > last) break;
    if (wanted.has(entry.path) && entry.kind !== 'symlink') found.set(entry.path, await readText(entry));
  }
  if (dockerfile !== undefined && !found.has(dockerfile))
    throw new BuildFailure(`There is no ${dockerfile} in the source, which the variable PAAS_DOCKERFILE names.`);
  const procfile = found.get('Procfile');
  const path = dockerfile ?? names.find((name) => found.has(name));
  return {
    procfile: procfile === undefined ? undefined : parseProcfile(procfile),
    dockerfile: path === undefined ? undefined : { path, arguments: readBuildArguments(found.get(path) ?? '') },
  };
}

async function readText({ path, content }: SourceEntry): Promise<string> {
  const bytes = await readAtMost(content instanceof Uint8Array ? [content] : content, longestFile);
  if (bytes === undefined) throw new BuildFailure(`${path} is larger than ${longestFile / 1024} KiB. Make it smaller.`);
  return bytes.toString();
}
