/** What the exit code of `paas` tells a script. */
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

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export const exitCodeMeanings: Readonly<Record<ExitCode, string>> = {
  0: 'done',
  1: 'it failed: a build, a check, or the platform itself',
  2: 'used wrongly: an unknown command or flag, or a value the platform refuses',
  3: 'not logged in, or not allowed',
  4: 'no such thing',
  5: 'in the way of something else: a name that is taken, a build that is over',
  6: 'the platform cannot be reached',
  7: 'too many requests: try again later',
  130: 'ended with Ctrl-C',
};

/** An error whose message is for the person at the terminal; `hint` is the next thing to do. */
export class CliError extends Error {
  readonly exitCode: ExitCode;
  readonly hint: string | undefined;

  constructor(message: string, options: { exitCode?: ExitCode; hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'CliError';
    this.exitCode = options.exitCode ?? exitCodes.failed;
    this.hint = options.hint;
  }
}

/** The command line itself is wrong. */
export function usageError(message: string, hint?: string): CliError {
  return new CliError(message, { exitCode: exitCodes.usage, ...(hint === undefined ? {} : { hint }) });
}

/** Ctrl-C at a prompt: ends without a word. */
export class Interrupted extends Error {
  constructor() {
    super('Interrupted.');
    this.name = 'Interrupted';
  }
}
