import type { SshKeys } from '#shared/core/accounts/accounts.ts';
import { AppError } from '#shared/errors.ts';
import type { Middleware } from '#sshd/commands/command-handler.ts';

/**
 * Looks the key up again for each command, and passes on the identity it has now. A connection may stay open for hours
 * (ControlPersist); meanwhile the key may be removed, or the role of its owner may change.
 */
export function recheckKey(sshKeys: Pick<SshKeys, 'resolveKey'>): Middleware {
  return (next) => async (command) => {
    const identity = await sshKeys.resolveKey(command.key);
    if (identity === undefined || identity.userId !== command.identity.userId) {
      throw new AppError('unauthorized', 'Your SSH key is no longer registered. To register it again, run: paas keys:add');
    }
    return next({ ...command, identity });
  };
}
