/** Command lines of buildah, which builds and unpacks container images inside the sandbox. Nothing here runs one. */

/** The directory of the app's cache that has the layers of images and the caches of `RUN --mount=type=cache`. */
export const containerCache = 'containers';

const cache = `/cache/${containerCache}`;

/** Where the platform's Node.js, its script, and the configuration of buildah are during a build. Nothing there can be written. */
export const toolTargets = {
  node: '/opt/paas/node/bin/node',
  keepTimes: '/opt/paas/keep-times.ts',
  config: '/etc/containers',
} as const;

/** Where a step leaves what it has found out about the image, in the home directory of the build. */
export const answers = { config: 'image.json', users: 'passwd', groups: 'group', sizes: 'sizes' } as const;

/** The name of the image within the storage. */
const tag = 'localhost/app';

/**
 * buildah reads its configuration again and again, and RUN can write to all of the build's own directories, also by the ids of its cache
 * mounts. A program that the configuration names would have the rights of buildah: so it is read where nobody writes, and so is that of git.
 */
const environment: Readonly<Record<string, string>> = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: toolTargets.config,
  TMPDIR: '/tmp',
  LANG: 'C.UTF-8',
  // The platform has made the user namespace already.
  _CONTAINERS_USERNS_CONFIGURED: 'done',
  BUILDAH_ISOLATION: 'chroot',
  STORAGE_DRIVER: 'overlay',
  STORAGE_OPTS: '',
  CONTAINERS_STORAGE_CONF: `${toolTargets.config}/storage.conf`,
  CONTAINERS_CONF: `${toolTargets.config}/containers.conf`,
  CONTAINERS_REGISTRIES_CONF: `${toolTargets.config}/registries.conf`,
  REGISTRY_AUTH_FILE: `${toolTargets.config}/auth.json`,
};

/** A command of a build. */
export interface ContainerStep {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * What all scripts begin with. Versions of buildah have different names for the directory with the caches of RUN. A mount namespace of the user namespace's own is needed to mount anything.
 */
const preamble = `set -eu
b() { paas_command=$1; shift; buildah --root ${cache}/storage --runroot /tmp/buildah-run "$paas_command" "$@"; }
mkdir -p ${cache}/mounts /tmp/buildah-run
for name in buildah-cache buildah-cache-0; do [ -e /tmp/$name ] || ln -s ${cache}/mounts /tmp/$name; done
`;

/** Writes the answers about an image. */
const examine = `b rm --all > /dev/null
container=$(b from --pull-never ${tag})
root=$(b mount "$container")
b inspect --type image ${tag} > /home/app/${answers.config}
cat "$root/etc/passwd" > /home/app/${answers.users} 2> /dev/null || :
cat "$root/etc/group" > /home/app/${answers.groups} 2> /dev/null || :
du --apparent-size --block-size=1 --one-file-system --max-depth=3 -- "$root" | sed "s|$root||" > /home/app/${answers.sizes}
b rm "$container" > /dev/null
`;

function script(text: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): ContainerStep {
  return {
    argv: ['/usr/bin/unshare', '--mount', '--', '/bin/sh', '-c', `${preamble}${text}`, 'paas-containers', ...args],
    env: { ...env, ...environment },
  };
}

/**
 * Builds an image and examines it. Values of build arguments go through the environment, since arguments of a program can be seen, and have
 * their own names for buildah alone: a variable such as NODE_OPTIONS would have Node.js run code of the app with the rights of the tools.
 * @param dockerfile relative to /app
 * @param buildArguments names are those of `chooseBuildArguments`
 */
export function planImageBuild(
  dockerfile: string,
  buildArguments: Readonly<Record<string, string>>,
  environment: Readonly<Record<string, string>>,
): ContainerStep {
  const names = Object.keys(buildArguments);
  const options = [
    '--layers', '--format', 'docker', '--network', 'host', '--tag', tag, '--file', dockerfile,
    ...names.flatMap((name) => ['--build-arg', name]),
  ]; // biome-ignore format: as typed on a command line
  // Some shells have read-only variables such as UID: without `command` they would end.
  const exported = names.map((name, index) => `command export ${name}="$${argumentVariable(index)}" || :\n`).join('');
  const values = Object.fromEntries(names.map((name, index) => [argumentVariable(index), buildArguments[name] ?? '']));
  return script(
    `${toolTargets.node} ${toolTargets.keepTimes} /app ${cache}/times.json\n(\n${exported}b build "$@" /app\n)\n${examine}`,
    options,
    { ...environment, ...values },
  );
}

function argumentVariable(index: number): string {
  return `PAAS_BUILD_ARGUMENT_${index}`;
}

/** Copies the files of the image to a directory, with their owners. @param workdir absolute in the image; created if missing */
export function planUnpack(target: string, workdir: string): ContainerStep {
  const text = `container=$(b from --pull-never ${tag})
root=$(b mount "$container")
mkdir -p -- "$root$2"
cp --archive --no-target-directory --reflink=auto -- "$root" "$1"
b rm "$container" > /dev/null
`;
  return script(text, [target, workdir]);
}
