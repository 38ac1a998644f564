import { fchownSync } from 'node:fs';
import { AppError } from '#shared/errors.ts';
import { limits } from '#shared/limits.ts';
import type { Sandbox } from '../sandbox/open-sandbox.ts';
import type { SandboxMount } from '../sandbox/sandbox.ts';
import { SandboxStartError } from '../sandbox/sandbox-process.ts';
import type { Program, Programs } from './programs.ts';

/** What is needed of an image to run it. */
export interface ImageRuntime {
  /** Absolute path of its files. */
  root: string;
  /** The toolchains it needs. */
  mounts: readonly SandboxMount[];
  /** The app's own variables win over these, except PATH, without which the image's programs are not found. */
  env: Readonly<Record<string, string>>;
}

/** What programs need to run. */
export interface SandboxedProgramsOptions {
  sandbox: Sandbox;
  /** @throws AppError when there is no such image */
  readImage(imageUrl: string): Promise<ImageRuntime>;
}

const systemPath = '/usr/local/bin:/usr/bin:/bin';
const mebibyte = 1024 * 1024;
const temporaryBytes = 256 * mebibyte;
/** In /app, and of any file. */
const writtenBytes = 256 * mebibyte;
/** Runs each program in a sandbox, under the uid of its app. */
export function createSandboxedPrograms({ sandbox, readImage }: SandboxedProgramsOptions): Programs {
  return {
    async start(spec): Promise<Program> {
      const { root, mounts, env } = await readImage(spec.imageUrl);
      const path = env['PATH'] ?? systemPath;
      const stdout = spec.output === 'pipe' ? spec.output : { fd: spec.output.stdout };
      const stderr = spec.output === 'pipe' ? spec.output : { fd: spec.output.stderr };
      const network = await sandbox.ensureNetwork(spec.appId);
      const uid = await sandbox.ensureUid(spec.appId);
      // A program that opens /dev/stdout itself may do that only as the owner of the pipe.
      if (process.getuid?.() === 0 && spec.output !== 'pipe')
        for (const fd of [spec.output.stdout, spec.output.stderr]) fchownSync(fd, uid, uid);
      try {
        const process = await sandbox.spawn(
          {
            id: spec.id,
            uid,
            argv: ['/bin/sh', '-c', spec.command],
            env: { HOME: sandbox.layers ? '/app' : '/tmp', ...env, ...spec.env, PATH: path },
            cwd: '/app',
            ...(sandbox.layers
              ? { mounts, layer: { source: root, target: '/app', bytes: writtenBytes } }
              : { mounts: [{ source: root, target: '/app' }, ...mounts] }),
            tmp: { bytes: temporaryBytes },
            limits: { memoryBytes: limits.app.memoryBytes, processes: limits.app.processes, fileBytes: writtenBytes },
            network: network?.namespace,
            dieWithParent: !spec.survivesControlPlane,
          },
          { stdout, stderr },
        );
        return { ...process, address: network?.address ?? '127.0.0.1' };
      } catch (error) {
        if (error instanceof SandboxStartError) throw new AppError('internal', error.message, { cause: error });
        throw error;
      }
    },
    isAlive: sandbox.isAlive,
    terminate: (record) => sandbox.signal(record, 'SIGTERM'),
    end: sandbox.end,
    readUsage: sandbox.readUsage,
    ranOutOfMemory: sandbox.ranOutOfMemory,
  };
}
