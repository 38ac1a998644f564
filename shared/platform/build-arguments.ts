/** Variables of an app that the ARG instructions of its Dockerfile ask for. */

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
