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
  const commands = new Map<string, string>();
  text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .forEach((line, index) => {
      const trimmed = line.trim();
      if (trimmed === '' || trimmed.startsWith('#')) return;
      const colon = trimmed.indexOf(':');
      const [type, command] = [trimmed.slice(0, Math.max(colon, 0)).trimEnd(), trimmed.slice(colon + 1).trimStart()];
      if (!typeName.test(type) || command === '') {
        throw new BuildFailure(`Procfile line ${index + 1} is not "<type>: <command>": ${shorten(trimmed)}`);
      }
      if (commands.has(type))
        throw new BuildFailure(`Procfile declares "${type}" twice (again on line ${index + 1}). Keep one of them.`);
      if (command.length > longestCommand)
        throw new BuildFailure(
          `Procfile line ${index + 1} has a command of more than ${longestCommand} characters. Put it into a script.`,
        );
      commands.set(type, command);
      if (commands.size > mostTypes) throw new BuildFailure(`Procfile declares more than ${mostTypes} process types.`);
    });
  const releaseCommand = commands.get('release');
  commands.delete('release');
  return { processes: Object.fromEntries(commands), ...omitUndefined({ releaseCommand }) };
}

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
