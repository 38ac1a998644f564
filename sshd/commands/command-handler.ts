import type { GitStream } from '#shared/git/git-storage.ts';
import type { SshIdentity } from '../login/authentication.ts';

/** One command of one logged-in person: what the middlewares hand on. */
export interface Command {
  readonly requestId: string;
  readonly identity: SshIdentity;
  /** The raw public key of the login. */
  readonly key: Uint8Array;
  /** As in the exec request; undefined when a shell was asked for. */
  readonly text: string | undefined;
  readonly stream: GitStream;
  /** Lines on the client's stderr. */
  say(...lines: readonly string[]): Promise<void>;
}

/** Resolves with the exit status. */
export type CommandHandler = (command: Command) => Promise<number>;

/** Wraps a handler: does its part before, after or instead of it. */
export type Middleware = (next: CommandHandler) => CommandHandler;

/** The first middleware is the outermost. */
export function chain(middlewares: readonly Middleware[], innermost: CommandHandler): CommandHandler {
  return middlewares.reduceRight((next, middleware) => middleware(next), innermost);
}
