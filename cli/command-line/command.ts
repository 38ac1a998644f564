import type { ArgumentSpecs, FlagSpecs, ParsedArguments } from '#cli/command-line/arguments.ts';
import type { Context } from '#cli/context/context.ts';
import type { ExitCode } from '#cli/errors/cli-error.ts';

/** Headings of `paas help`, in its order. */
export const commandGroups = [
  'Account',
  'Team',
  'SSH keys',
  'Apps',
  'Config',
  'Domains',
  'Processes',
  'Add-ons',
  'Logs',
  'Releases',
  'Builds',
  'Platform',
] as const;

export type CommandGroup = (typeof commandGroups)[number];

/** One verb of the command line; what it declares here is parsed, checked and shown by `--help`. */
export interface Command<Flags extends FlagSpecs = FlagSpecs, Arguments extends ArgumentSpecs = ArgumentSpecs> {
  readonly name: string;
  /** Other names that fingers know from elsewhere; they work, and are not listed. */
  readonly aliases?: readonly string[];
  readonly group: CommandGroup;
  /** One line without a full stop. */
  readonly summary: string;
  /** What more there is to know, as paragraphs. */
  readonly details?: readonly string[];
  readonly flags: Flags;
  readonly args: Arguments;
  readonly examples?: readonly string[];
  /** Answers with an exit code where it is not 0. */
  run(context: Context, input: ParsedArguments<Flags, Arguments>): Promise<ExitCode | void>;
}

/** Ties the types of `run` to the flags and arguments declared beside it. */
export function defineCommand<const Flags extends FlagSpecs, const Arguments extends ArgumentSpecs>(
  command: Command<Flags, Arguments>,
): Command<Flags, Arguments> {
  return command;
}

/** Flags every command takes. */
export const globalFlags = {
  help: { kind: 'boolean', short: 'h', summary: 'what this command does' },
  host: { kind: 'string', value: 'URL', summary: 'the platform to talk to' },
  json: { kind: 'boolean', summary: 'data as JSON' },
} as const satisfies FlagSpecs;

/** Flags of commands that are about one app. */
export const appFlags = {
  app: { kind: 'string', short: 'a', value: 'NAME', summary: 'the app' },
  remote: { kind: 'string', short: 'r', value: 'NAME', summary: 'the git remote whose app is meant (default: paas)' },
} as const satisfies FlagSpecs;
