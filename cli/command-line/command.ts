import type { ArgumentSpecs, FlagSpecs, ParsedArguments } from '#cli/command-line/arguments.ts';
import type { Context } from '#cli/context/context.ts';

/** Headings of `paas help`, in their order. */
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

/** A heading of `paas help`. */
export type CommandGroup = (typeof commandGroups)[number];

/** A command. Its declaration is used to parse and check the command line, and for `--help`. */
export interface Command<Flags extends FlagSpecs = FlagSpecs, Arguments extends ArgumentSpecs = ArgumentSpecs> {
  readonly name: string;
  /** Other names, known from other platforms. They work, but are not listed. */
  readonly aliases?: readonly string[];
  readonly group: CommandGroup;
  /** One line in lower case without a full stop. */
  readonly summary: string;
  /** More paragraphs for `--help`. */
  readonly details?: readonly string[];
  readonly flags: Flags;
  readonly args: Arguments;
  readonly examples?: readonly string[];
  /** Resolves with the exit code, an `ExitCode` unless it is that of another program, or with nothing for 0. */
  run(context: Context, input: ParsedArguments<Flags, Arguments>): Promise<number | void>;
}

/** Infers the types of the parameters of `run` from the declared flags and arguments. */
export function defineCommand<const Flags extends FlagSpecs, const Arguments extends ArgumentSpecs>(
  command: Command<Flags, Arguments>,
): Command<Flags, Arguments> {
  return command;
}

/** Flags of every command. */
export const globalFlags = {
  help: { kind: 'boolean', short: 'h', summary: 'show help for this command' },
  host: { kind: 'string', value: 'URL', summary: 'URL of the platform' },
  json: { kind: 'boolean', summary: 'print JSON' },
} as const satisfies FlagSpecs;

/** Flags of commands for one app. */
export const appFlags = {
  app: { kind: 'string', short: 'a', value: 'NAME', summary: 'name of the app' },
  remote: { kind: 'string', short: 'r', value: 'NAME', summary: 'use the app of this git remote (default: paas)' },
} as const satisfies FlagSpecs;
