import { omitUndefined } from '#shared/omit-undefined.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';

/** The Procfile as Heroku defines it: a line a process type, `<type>: <command>`. */
export interface Procfile {
  /** In the file's order; `release` is not among them. */
  readonly processes: Readonly<Record<string, string>>;
  readonly releaseCommand?: string;
}

const declaration = /^([A-Za-z0-9_-]+)\s*:\s*(.+)$/;

/** @throws BuildFailure with a line for the person who wrote it */
export function parseProcfile(text: string): Procfile {
  const commands = new Map<string, string>();
  text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .forEach((line, index) => {
      const trimmed = line.trim();
      if (trimmed === '' || trimmed.startsWith('#')) return;
      const [, type, command] = declaration.exec(trimmed) ?? [];
      if (type === undefined || command === undefined) {
        throw new BuildFailure(`Procfile line ${index + 1} is not "<type>: <command>": ${shorten(trimmed)}`);
      }
      if (commands.has(type))
        throw new BuildFailure(`Procfile declares "${type}" twice (again on line ${index + 1}). Keep one of them.`);
      commands.set(type, command);
    });
  const releaseCommand = commands.get('release');
  commands.delete('release');
  return { processes: Object.fromEntries(commands), ...omitUndefined({ releaseCommand }) };
}

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
