import { join } from 'node:path';
import { describePortTaken } from '#deploy/host/port-owner.ts';
import { StartError } from '#deploy/host/start-error.ts';
import type { Lifetime } from '#deploy/parts/lifetime.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import type { Context } from '#shared/core/context.ts';
import { limits } from '#shared/limits.ts';
import { loadHostKeys } from '#sshd/host-keys.ts';
import { createSshServer, type SshServerOptions } from '#sshd/server.ts';

export interface SshParts {
  context: Context;
  services: Pick<SshServerOptions, 'sshKeys' | 'pushes'>;
}

const graceMilliseconds = 1000;

/**
 * Serves git over SSH, with the host keys of the data directory.
 * @param shared whether other processes of this user may serve at the same port, too
 * @throws StartError when the port is taken
 */
export async function serveSsh(
  lifetime: Lifetime,
  parts: SshParts,
  { settings, dataDir }: StartOptions,
  shared = false,
): Promise<void> {
  const { git, clock, log } = parts.context;
  const { sshKeys, pushes } = parts.services;
  const hostKeys = await loadHostKeys(join(dataDir, 'ssh'));
  const server = createSshServer({ sshKeys, pushes, git: git.server, hostKeys, limits: limits.ssh, clock, log });
  try {
    await server.listen(settings.sshListenPort, settings.host, shared);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    const name = settings.sshListenPort === settings.sshPort ? 'PAAS_SSH_PORT' : 'PAAS_SSH_LISTEN_PORT';
    throw new StartError(await describePortTaken(settings.sshListenPort, name));
  }
  lifetime.onEnd(() => server.close(graceMilliseconds));
}
