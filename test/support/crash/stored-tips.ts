import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ifMissing } from '#shared/files/if-missing.ts';
import type { ObjectId } from '#shared/ids.ts';
import type { RemoteTips } from '#shared/sources/source-hosts.ts';

/** A git host that survives every control plane: `main` of each repository is in a file. */
const pathOf = (directory: string, url: string): string => join(directory, 'git-host', basename(url));

export async function storeTip(directory: string, url: string, commit: string): Promise<void> {
  await mkdir(join(directory, 'git-host'), { recursive: true });
  await writeFile(pathOf(directory, url), commit);
}

export async function listStoredTips(directory: string, url: string): Promise<RemoteTips> {
  const commit = await readFile(pathOf(directory, url), 'utf8').catch(ifMissing(undefined));
  return { branches: new Map(commit === undefined ? [] : [['main', commit as ObjectId]]), defaultBranch: 'main' };
}
