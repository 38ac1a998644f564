import { AppError } from '#shared/errors.ts';

const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * The script that the shell inside runs: it sets the environment, then becomes the program. The last line starts the program, so a
 * script that was cut short, since the platform died while writing it, starts nothing.
 * @throws AppError 'validation_failed' for a name that no shell can set or a value with a NUL
 */
export function launchScript(env: Readonly<Record<string, string>>): string {
  const lines = Object.entries(env).map(([name, value]) => {
    if (!variableName.test(name))
      throw new AppError('validation_failed', `"${name}" cannot be the name of a variable: use letters, digits and _.`);
    if (value.includes('\0'))
      throw new AppError('validation_failed', `The value of ${name} contains a NUL byte, which no environment can hold.`);
    return `export ${name}=${quote(value)}\n`;
  });
  return `${lines.join('')}exec "$@"\n`;
}

/** @returns the text as one word of a POSIX shell */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
