import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import type { Middleware } from '#sshd/commands/command-handler.ts';

/** Logs each command when it has ended. */
export function logCommands(log: Log, clock: Clock): Middleware {
  return (next) => async (command) => {
    const started = clock.now().getTime();
    const status = await next(command);
    log.info('ssh command', {
      request_id: command.requestId,
      command: command.text?.slice(0, 200) ?? 'shell',
      user_id: command.identity.userId,
      tenant_id: command.identity.tenantId,
      key: command.identity.fingerprint,
      status,
      client_gone: command.stream.clientGone.aborted,
      milliseconds: clock.now().getTime() - started,
    });
    return status;
  };
}
