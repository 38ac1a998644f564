/** A directory that code may write to as if it were its own, and that stays as it was: an overlay whose upper half is memory. */

export interface SandboxLayer {
  /** Absolute host path of the directory below; never written. */
  readonly source: string;
  readonly target: string;
  /** Most that may be written. Counts against the memory limit, and is gone with the sandbox. */
  readonly bytes: number;
}

export interface LayerHost {
  readonly root: boolean;
  /** Absolute path of an empty directory, in which each sandbox mounts its own, for nobody else to see. */
  readonly layerDirectory: string;
}

export interface LayerPlan {
  /** Goes before the command that then finds the layer at `path`. */
  readonly argv: readonly string[];
  /** What argv reads from `layerDescriptor`. */
  readonly input: string;
  readonly path: string;
}

export const layerDescriptor = 9;

// Relative paths in the options need no escaping, whatever is in the path of the data directory. In subshells: the
// shell's own directory is seen in the environment of what it becomes.
const script = `fail() { echo "no writable layer: $1" >&2; exit 125; }
{ IFS= read -r directory; IFS= read -r source; IFS= read -r owner; IFS= read -r size; IFS= read -r options; } <&${layerDescriptor}
exec ${layerDescriptor}<&-
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
      // In the namespace of an ordinary user there is nobody but root, who is that user.
      root ? `${owner}:${owner}` : '0:0',
      `size=${bytes},nr_inodes=${Math.ceil(bytes / 1024)}`,
      // Directories of the image can be renamed only if the kernel may note where they came from.
      root ? 'redirect_dir=on' : 'userxattr',
      '',
    ].join('\n'),
    path: `${layerDirectory}/app`,
  };
}
