import { limits } from '#shared/limits.ts';
import { splitWords } from '#shared/platform/command-words.ts';
import type { LocalImage } from '../images/images.ts';
import type { SandboxSpec } from '../sandbox/sandbox.ts';
import type { ProgramSpec } from './programs.ts';

/** What is needed of an image to run it. */
export type ImageRuntime = Pick<LocalImage, 'root' | 'mounts' | 'env' | 'container'>;

/** What a program's sandbox depends on besides the program and its image. */
export interface ProgramPlace {
  readonly uid: number;
  readonly network: string | undefined;
  /** Whether the kernel has writable layers. */
  readonly layers: boolean;
}

const systemPath = '/usr/local/bin:/usr/bin:/bin';
const mebibyte = 1024 * 1024;
const temporaryBytes = 256 * mebibyte;
/** In /app or the root of a container image, and of any file. */
const writtenBytes = 256 * mebibyte;
/** Where the files of a container image are in its sandbox. */
const imageRoot = '/image';

/** Plans the sandbox of a program: its command in its image. */
export function planProgram(
  { id, command, env, survivesControlPlane }: Pick<ProgramSpec, 'id' | 'command' | 'env' | 'survivesControlPlane'>,
  image: ImageRuntime,
  { uid, network, layers }: ProgramPlace,
): SandboxSpec {
  const common = {
    id,
    uid,
    tmp: { bytes: temporaryBytes },
    limits: { memoryBytes: limits.app.memoryBytes, processes: limits.app.processes, fileBytes: writtenBytes },
    network,
    dieWithParent: !survivesControlPlane,
  };
  const path = image.env['PATH'] ?? systemPath;
  const { container } = image;
  if (container !== undefined) {
    return {
      ...common,
      // An image may have no shell.
      argv: splitWords(command) ?? ['/bin/sh', '-c', command],
      env: { ...image.env, ...env, PATH: path },
      cwd: container.workdir,
      mounts: [],
      layer: { source: image.root, target: imageRoot, bytes: writtenBytes },
      container: { kind: 'image', users: container.users, root: imageRoot, uid: container.uid, gid: container.gid },
    };
  }
  return {
    ...common,
    argv: ['/bin/sh', '-c', command],
    env: { HOME: layers ? '/app' : '/tmp', ...image.env, ...env, PATH: path },
    cwd: '/app',
    ...(layers
      ? { mounts: image.mounts, layer: { source: image.root, target: '/app', bytes: writtenBytes } }
      : { mounts: [{ source: image.root, target: '/app' }, ...image.mounts] }),
  };
}
