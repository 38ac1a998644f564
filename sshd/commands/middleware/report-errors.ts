import { AppError } from '#shared/errors.ts';
import type { Log } from '#shared/log.ts';
import type { Middleware } from '#sshd/commands/command-handler.ts';

/**
 * Prints errors to the client and exits with status 1. The message of an unexpected error goes to the log only; the client
 * gets the request id, which is in that log line.
 */
export function reportErrors(log: Log): Middleware {
  return (next) => async (command) => {
    try {
      return await next(command);
    } catch (error) {
      if (error instanceof AppError && error.code !== 'internal') {
        await command.printError(
          error.message,
          ...error.details.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)),
        );
        return 1;
      }
      log.error('ssh command failed', { request_id: command.requestId, error });
      await command.printError(
        `Something went wrong on our side (${command.requestId}). Try again. If it keeps failing, give your operator this id.`,
      );
      return 1;
    }
  };
}
