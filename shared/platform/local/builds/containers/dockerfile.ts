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

/** Names that ARG instructions declare, each once. */
export function readBuildArguments(dockerfile: string): readonly string[] {
  const lines = dockerfile.replaceAll(/\\[ \t]*\r?\n/g, ' ').split(/\r?\n/);
  const declared = lines.flatMap((line) => {
    const text = /^\s*ARG\s+(.*)$/i.exec(line)?.[1];
    return text === undefined ? [] : [...text.matchAll(/(?:^|\s)([A-Za-z_][A-Za-z0-9_]*)(?:=(?:"[^"]*"|'[^']*'|\S*))?/g)];
  });
  return [...new Set(declared.map(([, name]) => name ?? ''))];
}

/**
 * Variables by which an app could change the programs of the platform that build it (buildah, and git for ADD), or that these set
 * themselves.
 */
const reserved =
  /^(?:LD_|BUILDAH_|CONTAINERS_|STORAGE_|REGISTRY_|_CONTAINERS_|PAAS_BUILD_ARGUMENT_|XDG_|GLIBC_|GCONV_PATH$|GO(?:DEBUG|TRACEBACK|COVERDIR)$|(?:DOCKER_AUTH_CONFIG|DOCKER_CONFIG|HOME|PATH|TMPDIR|IFS|ENV|SSH_ASKPASS)$|GIT_(?:SSH|CONFIG|TRACE|ASKPASS|EXEC_PATH|PROXY|TEMPLATE|EXTERNAL|EDITOR|PAGER|DIR$|WORK_TREE$))/;

/** The app's variables that a Dockerfile asks for. @param env of the app */
export function chooseBuildArguments(
  dockerfile: string,
  env: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const names = readBuildArguments(dockerfile).filter((name) => name in env && !reserved.test(name));
  return Object.fromEntries(names.map((name) => [name, env[name] ?? '']));
}
