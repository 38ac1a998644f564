import type { ArgumentSpecs, FlagSpecs } from '#cli/command-line/arguments.ts';
import { type Command, commandGroups, globalFlags } from '#cli/command-line/command.ts';
import { exitCodeMeanings } from '#cli/errors/cli-error.ts';
import type { Paint } from '#cli/output/paint.ts';
import { table } from '#cli/output/table.ts';

/** `paas help`: all commands by group, common flags, environment variables and exit codes. */
export function overview(commands: readonly Command[], paint: Paint): string {
  const sections = commandGroups.map((group) => {
    const rows = commands.filter((command) => command.group === group).map((command) => [usage(command), command.summary]);
    return `${paint('bold', group)}\n${indent(table(rows))}`;
  });
  return [
    `${paint('bold', 'Usage')}  paas COMMAND [arguments] [flags]   (details: \`paas help COMMAND\`)\n`,
    ...sections,
    `${paint('bold', 'Common flags')}\n${indent(table(flagRows(globalFlags)))}`,
    `${paint('bold', 'Environment')}\n${indent(table(environment))}`,
    `${paint('bold', 'Exit codes')}\n${indent(table(Object.entries(exitCodeMeanings).map(([code, meaning]) => [code, meaning])))}`,
  ].join('\n');
}

const environment: readonly (readonly [string, string])[] = [
  ['PAAS_APP', 'app to use without -a or -r (default: the app of the git remote "paas")'],
  ['PAAS_API_URL', 'URL of the platform (default: the platform of the last login, or http://localhost:8080)'],
  ['PAAS_TENANT', 'id of the team to act in (default: the team that you joined first)'],
  ['PAAS_TOKEN', 'access token or API token to use instead of the stored login'],
  ['PAAS_PASSWORD', 'password for login and signup, if there is no terminal to ask'],
  ['NO_COLOR', 'disable colours (they are also disabled if the output is no terminal)'],
];

/** `paas help COMMAND`: usage, arguments, flags, details and examples. */
export function commandHelp(command: Command, paint: Paint): string {
  const parts = [`${sentence(command.summary)}\n`, `${paint('bold', 'Usage')}  paas ${usage(command)} [flags]\n`];
  const args = Object.entries(command.args);
  if (args.length > 0)
    parts.push(`${paint('bold', 'Arguments')}\n${indent(table(args.map(([name, spec]) => [name.toUpperCase(), spec.summary])))}`);
  parts.push(`${paint('bold', 'Flags')}\n${indent(table(flagRows({ ...command.flags, ...globalFlags })))}`);
  for (const paragraph of command.details ?? []) parts.push(`${paragraph}\n`);
  if (command.examples !== undefined)
    parts.push(`${paint('bold', 'Examples')}\n${indent(command.examples.map((line) => `${line}\n`).join(''))}`);
  return parts.join('\n');
}

/** `ps:scale TYPE=QUANTITY...` */
function usage(command: Command): string {
  return [command.name, ...argumentUsage(command.args)].join(' ');
}

function argumentUsage(args: ArgumentSpecs): string[] {
  return Object.entries(args).map(([name, spec]) => {
    const label = name.toUpperCase();
    if (spec.kind === 'required') return label;
    if (spec.kind === 'optional') return `[${label}]`;
    return spec.kind === 'any' ? `[${label}...]` : `${label}...`;
  });
}

function flagRows(flags: FlagSpecs): string[][] {
  return Object.entries(flags).flatMap(([name, spec]) => {
    if (spec.kind === 'refused') return [];
    const short = spec.short === undefined ? '    ' : `-${spec.short}, `;
    const value = spec.kind === 'boolean' ? '' : ` ${spec.value}`;
    return [[`${short}--${name}${value}`, spec.summary]];
  });
}

function sentence(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
}

function indent(lines: string): string {
  return lines.replace(/^(?=.)/gm, '  ');
}
