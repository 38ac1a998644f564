import { constants } from 'node:fs';
import { access } from 'node:fs/promises';

/** Absolute path of an executable, looked up on a PATH as a shell does. Undefined if there is none. */
export async function findExecutable(name: string, path: string): Promise<string | undefined> {
  for (const directory of path.split(':').filter((part) => part.startsWith('/'))) {
    const candidate = `${directory}/${name}`;
    const usable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return candidate;
  }
  return undefined;
}
