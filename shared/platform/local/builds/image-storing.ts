import { mkdir, rename, rmdir } from 'node:fs/promises';
import type { BuildOutput } from '#shared/platform/build-output.ts';
import type { PlaceTree, StoredImage } from '../images/images.ts';
import { hostCommands } from '../processes/host-commands.ts';
import type { SandboxBind } from '../sandbox/sandbox.ts';

/** Where the image is mounted while its files are copied into it. */
const imageMount = '/paas-image';

/**
 * Has an image's files copied in the sandbox, as the app's user (decision 25).
 * @param giveTo makes a directory the app's
 * @param copy copies to the path `to`, which is below the mount
 */
export function placeByCopy(
  giveTo: (directory: string) => Promise<void>,
  copy: (mount: SandboxBind, to: string) => Promise<void>,
): PlaceTree {
  return async (target) => {
    const copied = `${target}.copied`;
    await mkdir(copied);
    await giveTo(copied);
    await copy({ source: copied, target: imageMount, writable: true }, `${imageMount}/app`);
    await rename(`${copied}/app`, target);
    await rmdir(copied);
  };
}

/**
 * Has files copied by the platform itself. Only for files that no code of the app has shaped: then they are what the platform wrote, and no
 * path leads elsewhere.
 */
export function placeUntouched(directory: string): PlaceTree {
  return async (target) => {
    await hostCommands.run('cp', ['--archive', '--no-target-directory', '--reflink=auto', '--', directory, target]);
  };
}

/** Says how large the stored image is. */
export function reportStored(output: BuildOutput, { bytes, digest }: StoredImage): void {
  output.detail(`${(bytes / 1024 / 1024).toFixed(1)} MiB, sha256:${digest.slice(0, 12)}`);
}
