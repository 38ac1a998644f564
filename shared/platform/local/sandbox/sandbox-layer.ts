import { volumesMarker } from '../disk/volumes.ts';

/** A directory that code may write to and that does not change: an overlay whose upper part is in memory. */
export interface SandboxLayer {
  /** Absolute host path of the lower directory; never written. */
  readonly source: string;
  readonly target: string;
  /** How much may be written. It counts against the memory limit, and is gone with the sandbox. */
  readonly bytes: number;
}

/** The properties of the host that a layer depends on. */
export interface LayerHost {
  readonly root: boolean;
  /** Absolute path of an empty directory. Each sandbox mounts its layer on it, in a mount namespace of its own. */
  readonly layerDirectory: string;
}

/** How the layer is mounted. */
export interface LayerPlan {
  /** Precedes the command, which then finds the layer at `path`. */
  readonly argv: readonly string[];
  /** Passed to argv through `layerDescriptor`. */
  readonly input: string;
  readonly path: string;
}

/** The file descriptor from which the layer's script reads its input. */
export const layerDescriptor = 6;

// Paths in the options would need escaping, since that of the data directory may contain anything: they are relative, or name an open
// directory. They are used in subshells, since the shell's working directory appears in the environment of the program that it becomes.
// A copy of every mount comes along. Those of volumes go, or a volume would use disk space until the instance ends.
const script = `fail() { echo "no writable layer: $1" >&2; exit 125; }
{ IFS= read -r directory; IFS= read -r source; IFS= read -r owner; IFS= read -r size; IFS= read -r options
  while IFS= read -r volumes; do
    [ ! -e "$volumes/${volumesMarker}" ] || umount -n -l "$volumes"
  done; } <&${layerDescriptor}
exec ${layerDescriptor}< "$source"
mount -n -t tmpfs -o "$size,mode=0755" tmpfs "$directory" || fail memory
(cd "$directory" && install -d -o "$owner" -g "$owner" upper work app &&
  mount -n -t overlay -o "lowerdir=/proc/self/fd/${layerDescriptor},upperdir=upper,workdir=work,$options" overlay app) || fail overlay
exec ${layerDescriptor}<&-
exec "$@"`;

/**
 * @param owner uid that the top directory belongs to, as seen by this process
 * @param volumeRoots where volumes may be mounted
 */
export function planLayer(
  { source, bytes }: SandboxLayer,
  owner: number,
  { root, layerDirectory }: LayerHost,
  volumeRoots: readonly string[],
): LayerPlan {
  return {
    argv: [
      '/usr/bin/unshare', ...(root ? [] : ['--user', '--map-root-user']), '--mount', '--propagation', 'private', '--',
      '/bin/sh', '-c', script, 'paas-layer',
    ], // biome-ignore format: as typed on a command line
    input: [
      layerDirectory,
      source,
      // In the namespace of an ordinary user that user is root, and there is no other.
      root ? String(owner) : '0',
      `size=${bytes},nr_inodes=${Math.ceil(bytes / 1024)}`,
      // Without this, directories of the image could not be renamed.
      root ? 'redirect_dir=on' : 'userxattr',
      ...volumeRoots,
      '',
    ].join('\n'),
    path: `${layerDirectory}/app`,
  };
}
