import { omitUndefined } from '#shared/omit-undefined.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';

/** The Procfile as Heroku defines it: a line a process type, `<type>: <command>`. */
export interface Procfile {
  /** In the file's order; `release` is not among them. */
  readonly processes: Readonly<Record<string, string>>;
  readonly releaseCommand?: string;
}

const typeName = /^[A-Za-z0-9_-]+$/;

/** Process types of one app, the release command included. */
const mostTypes = 100;
/** Characters. */
const longestCommand = 16 * 1024;

/** @throws BuildFailure with a line for the person who wrote it */
export function parseProcfile(text: string): Procfile {
  const lines = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .flatMap((line, index) => {
      const trimmed = line.trim();
      if (trimmed === '' || trimmed.startsWith('#')) return [];
      const colon = trimmed.indexOf(':');
      const [type, command] = [trimmed.slice(0, Math.max(colon, 0)).trimEnd(), trimmed.slice(colon + 1).trimStart()];
      if (!typeName.test(type) || command === '')
        throw new BuildFailure(`Procfile line ${index + 1} is not "<type>: <command>": ${shorten(trimmed)}`);
      return [{ type, command, where: `Procfile line ${index + 1}`, again: `again on line ${index + 1}` }];
    });
  return toProcfile('Procfile', lines);
}

/**
 * What a file of another format declares, held to the limits of a Procfile.
 * @param file its name, for messages
 * @param commands by process type
 * @throws BuildFailure that names the type at fault
 */
export function checkProcesses(file: string, commands: Readonly<Record<string, string>>): Procfile {
  const lines = Object.entries(commands).map(([type, command]) => {
    if (!typeName.test(type))
      throw new BuildFailure(
        `${file} declares the process type "${shorten(type)}". The name of a type has letters, digits, - and _ only.`,
      );
    return { type, command: command.replaceAll(/\s*\n\s*/g, ' '), where: `${file}: "${type}"`, again: '' };
  });
  return toProcfile(file, lines);
}

interface Line {
  readonly type: string;
  readonly command: string;
  /** 'Procfile line 7' */
  readonly where: string;
  /** Said of a type that is there twice. */
  readonly again: string;
}

function toProcfile(file: string, lines: readonly Line[]): Procfile {
  const commands = new Map<string, string>();
  for (const { type, command, where, again } of lines) {
    if (commands.has(type)) throw new BuildFailure(`${file} declares "${type}" twice (${again}). Keep one of them.`);
    if (command.length > longestCommand)
      throw new BuildFailure(`${where} has a command of more than ${longestCommand} characters. Put it into a script.`);
    commands.set(type, command);
    if (commands.size > mostTypes) throw new BuildFailure(`${file} declares more than ${mostTypes} process types.`);
  }
  const releaseCommand = commands.get('release');
  commands.delete('release');
  return { processes: Object.fromEntries(commands), ...omitUndefined({ releaseCommand }) };
}

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
