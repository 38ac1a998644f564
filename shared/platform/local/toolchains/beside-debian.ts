import { BuildFailure } from '#shared/platform/build-failure.ts';
import { isDebianTool } from './debian/debian-tools.ts';
import type { Toolchain } from './toolchain.ts';
import type { Toolchains } from './toolchains.ts';

/**
 * Toolchains for an app whose language comes from Debian's packages: their /usr takes the place of the host's, so tools below /usr of the host
 * are not seen.
 */
export function besideDebian(toolchains: Toolchains): Toolchains {
  const visible = async <T extends Pick<Toolchain, 'path' | 'mounts'>>(label: string, found: Promise<T>): Promise<T> => {
    const toolchain = await found;
    const ofHost = toolchain.path.some((directory) => directory.startsWith('/usr/'));
    if (!ofHost && !toolchain.mounts.some((mount) => mount.kind === 'stored' && isDebianTool(mount.name))) return toolchain;
    throw new BuildFailure(`${label} of this platform is not seen beside a language that comes from Debian's packages.`);
  };
  return {
    ...toolchains,
    findNode: (request) => toolchains.findNode(request, { ofHost: false }),
    findPython: (requests) => visible('Python', toolchains.findPython(requests)),
    findGo: (request) => visible('Go', toolchains.findGo(request)),
    findRust: (request) => visible('Rust', toolchains.findRust(request)),
    findJava: (request) => visible('Java', toolchains.findJava(request)),
  };
}
