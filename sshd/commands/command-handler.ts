import type { GitStream } from '#shared/git/git-storage.ts';
import type { SshIdentity } from '#sshd/login/authentication.ts';

/** One command of a logged-in person. */
export interface Command {
  /** `req_` and 32 hex digits; in each log line about the command. */
  readonly requestId: string;
  readonly identity: SshIdentity;
  /** The raw public key of the login. */
  readonly key: Uint8Array;
  /** The text of the exec request; undefined when a shell was requested. */
  readonly text: string | undefined;
  /** The channel's input and standard output. */
  readonly stream: GitStream;
  /** Writes lines to the client's standard error. */
  printError(...lines: readonly string[]): Promise<void>;
}

/** Runs a command. Resolves with its exit status. */
export type CommandHandler = (command: Command) => Promise<number>;

/** Wraps a handler: runs before it, after it or instead of it. */
export type Middleware = (next: CommandHandler) => CommandHandler;

/** Wraps `handler` in the middlewares; the first one is the outermost. */
export function chain(middlewares: readonly Middleware[], handler: CommandHandler): CommandHandler {
  return middlewares.reduceRight((next, middleware) => middleware(next), handler);
}
