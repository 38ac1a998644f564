import { volumesMountName } from '../disk/volumes.ts';

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

// Relative paths in the options need no escaping, whatever the path of the data directory contains. They are used in subshells, since
// the shell's working directory appears in the environment of the program that it becomes.
// A copy of every mount comes along. Those of volumes go, or a volume would use disk space until the instance ends.
const script = `fail() { echo "no writable layer: $1" >&2; exit 125; }
{ IFS= read -r directory; IFS= read -r source; IFS= read -r owner; IFS= read -r size; IFS= read -r options; } <&${layerDescriptor}
exec ${layerDescriptor}<&-
while read -r name mount rest; do
  [ "$name" != ${volumesMountName} ] || umount -n -l "$(printf %b "$mount")"
done < /proc/mounts
mount -n -t tmpfs -o "$size,mode=0755" tmpfs "$directory" || fail memory
(cd "$directory" && mkdir lower upper work app && mount -n --bind "$source" lower && chown "$owner" upper &&
  mount -n -t overlay -o "lowerdir=lower,upperdir=upper,workdir=work,$options" overlay app) || fail overlay
exec "$@"`;

/** @param owner uid that the top directory belongs to, as seen by this process */
export function planLayer({ source, bytes }: SandboxLayer, owner: number, { root, layerDirectory }: LayerHost): LayerPlan {
  return {
    argv: [
      '/usr/bin/unshare', ...(root ? [] : ['--user', '--map-root-user']), '--mount', '--propagation', 'private', '--',
      '/bin/sh', '-c', script, 'paas-layer',
    ], // biome-ignore format: as typed on a command line
    input: [
      layerDirectory,
      source,
      // In the namespace of an ordinary user that user is root, and there is no other.
      root ? `${owner}:${owner}` : '0:0',
      `size=${bytes},nr_inodes=${Math.ceil(bytes / 1024)}`,
      // Without this, directories of the image could not be renamed.
      root ? 'redirect_dir=on' : 'userxattr',
      '',
    ].join('\n'),
    path: `${layerDirectory}/app`,
  };
}
