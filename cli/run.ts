import { countOwnWords, parseArguments } from '#cli/command-line/arguments.ts';
import { type Command, globalFlags } from '#cli/command-line/command.ts';
import { findCommand } from '#cli/command-line/find-command.ts';
import { commandHelp, overview } from '#cli/command-line/help-text.ts';
import { commands } from '#cli/commands/all.ts';
import { Context } from '#cli/context/context.ts';
import { version } from '#cli/context/version.ts';
import { toCliError } from '#cli/errors/api-failure.ts';
import { CliError, type ExitCode, exitCodes, Interrupted, usageError } from '#cli/errors/cli-error.ts';
import { painter } from '#cli/output/paint.ts';
import type { Terminal } from '#cli/terminal/terminal.ts';

/** Runs one command line. Returns its exit code. Writes to the given terminal only. */
export async function runCommandLine(argv: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return (await dispatch(argv, terminal)) ?? exitCodes.ok;
  } catch (error) {
    return report(error, terminal);
  }
}

async function dispatch(argv: readonly string[], terminal: Terminal): Promise<number | void> {
  const [name, ...rest] = argv;
  if (name === undefined || name === '--help' || name === '-h') {
    terminal.stdout.write(overview(commands, painter(terminal.stdout, terminal.env)));
    return;
  }
  if (name === '--version' || name === '-v') {
    terminal.stdout.write(`${version}\n`);
    return;
  }
  if (name.startsWith('-')) throw usageError(`The command must come before its flags: paas COMMAND ${name}`, 'See `paas help`.');
  const command = findCommand(name, commands);
  // For help, the arguments may be incomplete.
  if (wantsHelp(rest.slice(0, countOwnWords(rest, { flags: { ...command.flags, ...globalFlags }, args: command.args })))) {
    terminal.stdout.write(commandHelp(command, painter(terminal.stdout, terminal.env)));
    return;
  }
  return runCommand(command, rest, terminal);
}

async function runCommand(command: Command, argv: readonly string[], terminal: Terminal): Promise<number | void> {
  let input: ReturnType<typeof parse>;
  try {
    input = parse(command, argv);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw usageError(
      error.message,
      [error.hint, `See \`paas ${command.name} --help\`.`].filter((words) => words !== undefined).join(' '),
    );
  }
  const context = new Context(terminal, { json: input.flags.json, host: input.flags.host });
  return command.run(context, input);
}

function parse(command: Command, argv: readonly string[]) {
  return parseArguments(argv, { flags: { ...command.flags, ...globalFlags }, args: command.args });
}

function wantsHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return (end === -1 ? argv : argv.slice(0, end)).some((argument) => argument === '--help' || argument === '-h');
}

function report(error: unknown, terminal: Terminal): ExitCode {
  if (error instanceof Interrupted) return exitCodes.interrupted;
  const paint = painter(terminal.stderr, terminal.env);
  const failure = toCliError(error);
  if (failure !== undefined) {
    terminal.stderr.write(`${paint('red', ' !    ')} ${failure.message}\n`);
    if (failure.hint !== undefined) terminal.stderr.write(`       ${failure.hint}\n`);
    return failure.exitCode;
  }
  terminal.stderr.write(`${paint('red', ' !    ')} This is a bug of the command line itself:\n`);
  terminal.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return exitCodes.failed;
}
