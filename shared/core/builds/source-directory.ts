import type { AppRow } from '#shared/core/apps/apps-store.ts';
import { readSettings } from '#shared/core/releases/settings-store.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError } from '#shared/errors.ts';

/** The folder of its source that an app is built of, with '/' at its end; '' for all of it. */
export async function readDirectory(db: Db, app: Pick<AppRow, 'id' | 'parent_app_id'>): Promise<string> {
  const { directory } = await readSettings(db, app);
  return directory === null ? '' : `${directory}/`;
}

/** The entries in a folder, with their paths in it. @param directory as `readDirectory` returns it */
export async function* entriesBelow<Entry extends { path: string }>(
  entries: AsyncIterable<Entry>,
  directory: string,
): AsyncGenerator<Entry> {
  for await (const entry of entries)
    if (entry.path.startsWith(directory)) yield directory === '' ? entry : { ...entry, path: entry.path.slice(directory.length) };
}

/** @throws AppError `validation_failed` when nothing is in the folder; it names the folders that there are */
export async function requireDirectory(entries: AsyncIterable<{ path: string }>, directory: string): Promise<void> {
  if (directory === '') return;
  const folders = new Set<string>();
  for await (const { path } of entries) {
    if (path.startsWith(directory)) return;
    const [first = '', ...rest] = path.split('/');
    if (rest.length > 0 && folders.size < mostNamed) folders.add(first);
  }
  const there = folders.size === 0 ? 'It has no folders.' : `Its folders are: ${[...folders].join(', ')}.`;
  throw new AppError(
    'validation_failed',
    `The source has no folder ${directory.slice(0, -1)}, of which this app is built. ${there} To choose: paas settings:set directory=PATH`,
  );
}

const mostNamed = 20;
