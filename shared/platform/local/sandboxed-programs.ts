import { AppError } from '#shared/errors.ts';
import { limits } from '#shared/limits.ts';
import type { Sandbox } from './open-sandbox.ts';
import type { Program, Programs } from './programs.ts';
import { SandboxStartError } from './sandbox-process.ts';
import type { SandboxMount } from './sandbox.ts';

/** What an image needs besides the app's own variables. */
export interface ImageRuntime {
  mounts: readonly SandboxMount[];
  /** PATH among it; the app's own variables win over all but PATH. */
  env: Readonly<Record<string, string>>;
  cwd: string;
}

export interface SandboxedProgramsOptions {
  sandbox: Sandbox;
  /** Undefined when there is no such image. */
  readRuntime(imageUrl: string): Promise<ImageRuntime | undefined>;
}

const mebibyte = 1024 * 1024;
const temporaryBytes = 256 * mebibyte;
/** An app may fill its /tmp, not more. */
const fileBytes = 1024 * mebibyte;

export function createSandboxedPrograms({ sandbox, readRuntime }: SandboxedProgramsOptions): Programs {
  return {
    async start(spec): Promise<Program> {
      const runtime = await readRuntime(spec.imageUrl);
      if (runtime === undefined) throw new AppError('internal', 'its image is gone; deploy again to build it anew.');
      const { PATH: path = '/usr/local/bin:/usr/bin:/bin' } = runtime.env;
      const stdout = spec.output === 'pipe' ? spec.output : { fd: spec.output.stdout };
      const stderr = spec.output === 'pipe' ? spec.output : { fd: spec.output.stderr };
      try {
        return await sandbox.spawn(
          {
            id: spec.id,
            uid: await sandbox.ensureUid(spec.appId),
            argv: ['/bin/sh', '-c', spec.command],
            env: { HOME: '/tmp', LANG: 'C.UTF-8', ...runtime.env, ...spec.env, PATH: path },
            cwd: runtime.cwd,
            mounts: runtime.mounts,
            tmp: { bytes: temporaryBytes },
            limits: { memoryBytes: limits.app.memoryBytes, processes: limits.app.processes, fileBytes },
            dieWithParent: !spec.outlivesUs,
          },
          { stdout, stderr },
        );
      } catch (error) {
        if (error instanceof SandboxStartError) throw new AppError('internal', error.message, { cause: error });
        throw error;
      }
    },
    isAlive: sandbox.isAlive,
    terminate: (record) => sandbox.signal(record, 'SIGTERM'),
    end: sandbox.end,
    ranOutOfMemory: sandbox.ranOutOfMemory,
  };
}
