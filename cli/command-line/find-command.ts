import { closest } from '#cli/command-line/closest.ts';
import type { Command } from '#cli/command-line/command.ts';
import { usageError } from '#cli/errors/cli-error.ts';

/** Finds a command by its name or an alias. @throws CliError that suggests a similar command */
export function findCommand(name: string, commands: readonly Command[]): Command {
  const found = commands.find((command) => command.name === name || command.aliases?.includes(name) === true);
  if (found !== undefined) return found;
  const names = commands.flatMap((command) => [command.name, ...(command.aliases ?? [])]);
  const near = closest(name, names);
  throw usageError(`Unknown command "${name}".`, near === undefined ? 'See `paas help`.' : `Did you mean \`paas ${near}\`?`);
}
