import { AppError } from '#shared/errors.ts';
import type { Log } from '#shared/log.ts';
import type { Middleware } from '#sshd/commands/command-handler.ts';

/** Turns errors into words and exit status 1. What went wrong inside stays inside; the request id leads to it. */
export function faultsTold(log: Log): Middleware {
  return (next) => async (command) => {
    try {
      return await next(command);
    } catch (error) {
      if (error instanceof AppError && error.code !== 'internal') {
        await command.say(
          error.message,
          ...error.details.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)),
        );
        return 1;
      }
      log.error('ssh command failed', { request_id: command.requestId, error });
      await command.say(
        `Something went wrong on our side (${command.requestId}). Try again; if it stays, tell your operator this id.`,
      );
      return 1;
    }
  };
}
