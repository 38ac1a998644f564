import type { Caller } from '#shared/core/accounts/principals.ts';
import type { RunId } from '#shared/ids.ts';
import type { RunOutput, RunTerminal } from '#shared/platform/workloads.ts';

/** What a reader of a run gets: which run it is, what the command prints, and its exit code at the end. */
export type RunEvent = { readonly id: RunId; readonly releaseVersion: number } | Exclude<RunOutput, { started: true }>;

/** What to run. */
export interface RunRequest {
  /** A shell command line, or words that no shell interprets. */
  command: string | readonly string[];
  /** Whether `writeInput` feeds its standard input; else that is empty. */
  input: boolean;
  /** Left out: the command has no terminal. */
  terminal?: RunTerminal | undefined;
}

/** One-off commands beside an app, with its image, environment, network and limits, for one reader each. */
export interface Runs {
  /**
   * Runs a command with the newest release that is live or on its way there, so that a change of a variable applies at once; with the
   * newest of all if none is. It counts as an instance. It ends when the signal aborts, the reader stops or the app is deleted.
   * `conflict` when the app has no release, `forbidden` when the team would have more instances than it may.
   */
  startRun(caller: Caller, app: string, run: RunRequest, signal: AbortSignal): Promise<AsyncIterable<RunEvent>>;
  /**
   * Gives a run more of its standard input; null ends it. `not_found` for a run of another app, and one that has ended or
   * takes no input. `conflict` when the command has not read what it was given before.
   */
  writeInput(caller: Caller, app: string, run: string, bytes: Uint8Array | null): Promise<void>;
  /** For a reader who goes on. @throws AppError when the caller may no longer run commands */
  checkAccess(caller: Caller, app: string): Promise<void>;
}
