import type { SshKeys } from '#shared/core/accounts/accounts.ts';
import { AppError } from '#shared/errors.ts';
import type { Middleware } from '#sshd/commands/command-handler.ts';

/**
 * Looks the key up again for each command: a connection may be kept open for hours (ControlPersist), and meanwhile the
 * key be removed, or its owner's role change.
 */
export function keyStillRegistered(sshKeys: Pick<SshKeys, 'resolveKey'>): Middleware {
  return (next) => async (command) => {
    const identity = await sshKeys.resolveKey(command.key);
    if (identity === undefined || identity.userId !== command.identity.userId) {
      throw new AppError('unauthorized', 'Your SSH key is no longer registered. Register it again with: paas keys:add');
    }
    return next({ ...command, identity });
  };
}
