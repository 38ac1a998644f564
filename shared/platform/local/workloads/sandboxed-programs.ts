import { fchownSync } from 'node:fs';
import { AppError } from '#shared/errors.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import type { InstanceNetworks } from '../network/instance-networks.ts';
import type { Sandbox } from '../sandbox/open-sandbox.ts';
import { SandboxStartError } from '../sandbox/sandbox-process.ts';
import { type ImageRuntime, planProgram } from './plan-program.ts';
import type { Program, Programs } from './programs.ts';

/** What programs need to run. */
export interface SandboxedProgramsOptions {
  sandbox: Sandbox;
  networks: InstanceNetworks | undefined;
  /** @throws AppError when there is no such image */
  readImage(imageUrl: string): Promise<ImageRuntime>;
}

/** The uid on the host of the user that an image's programs run as. */
function outside({ container }: ImageRuntime, uid: number): number {
  return container === undefined || container.uid === 0 ? uid : container.users.first + container.uid;
}

/** Runs each program in a sandbox, under the uid of its app. */
export function createSandboxedPrograms({ sandbox, networks, readImage }: SandboxedProgramsOptions): Programs {
  return {
    networks,
    async start(spec): Promise<Program> {
      const image = await readImage(spec.imageUrl);
      const stdout = spec.output === 'pipe' ? spec.output : { fd: spec.output.stdout };
      const stderr = spec.output === 'pipe' ? spec.output : { fd: spec.output.stderr };
      const network = await sandbox.ensureNetwork(spec.appId);
      const uid = await sandbox.ensureUid(spec.appId);
      // A program that opens /dev/stdout itself may do that only as the owner of the pipe.
      if (process.getuid?.() === 0 && spec.output !== 'pipe')
        for (const fd of [spec.output.stdout, spec.output.stderr]) fchownSync(fd, outside(image, uid), uid);
      try {
        const plan = planProgram(spec, image, { uid, network: spec.network ?? network?.namespace, layers: sandbox.layers });
        const process = await sandbox.spawn(plan, { stdout, stderr, stdin: spec.input === true ? 'pipe' : undefined });
        const stopSignal = image.container?.stopSignal;
        return {
          ...process,
          record: { ...process.record, ...omitUndefined({ stopSignal }) },
          address: network?.address ?? '127.0.0.1',
          exposedPorts: image.container?.ports ?? [],
        };
      } catch (error) {
        if (error instanceof SandboxStartError) throw new AppError('internal', error.message, { cause: error });
        throw error;
      }
    },
    isAlive: sandbox.isAlive,
    terminate: (record) => sandbox.signal(record, record.stopSignal ?? 'SIGTERM'),
    end: sandbox.end,
    readUsage: sandbox.readUsage,
    ranOutOfMemory: sandbox.ranOutOfMemory,
  };
}
