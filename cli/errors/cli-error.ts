/** What the exit code of `paas` means to a script. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  notAllowed: 3,
  notFound: 4,
  conflict: 5,
  unreachable: 6,
  rateLimited: 7,
  interrupted: 130,
} as const;

/** A value of `exitCodes`. */
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** For `paas help`. */
export const exitCodeMeanings: Readonly<Record<ExitCode, string>> = {
  0: 'success',
  1: 'failure of a build, of a check, or of the platform',
  2: 'wrong usage: an unknown command or flag, or a value that the platform refuses',
  3: 'not logged in, or permission denied',
  4: 'not found',
  5: 'conflict: a name is taken, a build is over',
  6: 'the platform cannot be reached',
  7: 'too many requests: try again later',
  130: 'ended with Ctrl-C',
};

/** An error to show to the user. `hint` is the next thing to do. */
export class CliError extends Error {
  readonly exitCode: ExitCode;
  readonly hint: string | undefined;

  constructor(message: string, options: { exitCode?: ExitCode; hint?: string | undefined; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'CliError';
    this.exitCode = options.exitCode ?? exitCodes.failed;
    this.hint = options.hint;
  }
}

/** The command line that was typed is wrong: exit code 2. */
export function usageError(message: string, hint?: string): CliError {
  return new CliError(message, { exitCode: exitCodes.usage, hint });
}

/** Ctrl-C at a prompt: the program ends without a message. */
export class Interrupted extends Error {
  constructor() {
    super('Interrupted.');
    this.name = 'Interrupted';
  }
}
