import { type Command, defineCommand } from '#cli/command-line/command.ts';
import { findCommand } from '#cli/command-line/find-command.ts';
import { commandHelp, overview } from '#cli/command-line/help-text.ts';
import { version } from '#cli/context/version.ts';

/** @param list all commands. A function, because this command is one of them. */
export function helpCommand(list: () => readonly Command[]) {
  return defineCommand({
    name: 'help',
    group: 'Platform',
    summary: 'show all commands, or help for one',
    args: { command: { kind: 'optional', summary: 'name of a command, for example config:set' } },
    flags: {},
    run(context, { args }) {
      const text =
        args.command === undefined
          ? overview(list(), context.paint)
          : commandHelp(findCommand(args.command, list()), context.paint);
      context.terminal.stdout.write(text);
      return Promise.resolve();
    },
  });
}

export const versionCommand = defineCommand({
  name: 'version',
  group: 'Platform',
  summary: 'show the version of the command line',
  args: {},
  flags: {},
  run(context) {
    context.print(`${version}\n`, { version, node: process.versions.node });
    return Promise.resolve();
  },
});
