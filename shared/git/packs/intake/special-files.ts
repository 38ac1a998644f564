import { GitFault } from '#shared/git/git-fault.ts';
import { checkGitattributes } from '#shared/git/objects/check-gitattributes.ts';
import { checkGitmodules } from '#shared/git/objects/check-gitmodules.ts';
import type { SpecialFile } from '#shared/git/objects/check-tree.ts';
import { objectTypes, typeName } from '#shared/git/objects/object-type.ts';
import type { Warnings } from '#shared/git/objects/warnings.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';

const mebibyte = 1024 * 1024;
const largestFile = 16 * mebibyte;

/**
 * Checks the content of files that git itself reads. It is done when all of a pack is there, because the blob may come
 * before the tree that gives it its name, or have been in the repository for long under another one.
 *
 * @param largestWork bytes that may be made in all: deltas that are read in a bad order are made again and again
 * @throws GitFault naming the object when it is not sound, not there, or no file
 */
export async function checkSpecialFiles(
  files: Iterable<{ file: SpecialFile; oid: Buffer }>,
  database: ObjectDatabase,
  largestWork: number,
  yieldToEventLoop: YieldToEventLoop,
  warnings: Warnings,
): Promise<void> {
  const end = database.madeBytes + largestWork;
  for (const { file, oid } of files) {
    const pause = yieldToEventLoop();
    if (pause !== undefined) await pause;
    const fault = (what: string): GitFault => new GitFault(`blob ${oid.toString('hex')} ${what}`);
    const type = database.readType(oid);
    const location = database.find(oid);
    if (type === undefined || location === undefined)
      throw fault(`is used as ${file} and was not sent, nor is it in the repository`);
    if (type !== objectTypes.blob) throw fault(`is used as ${file} and is a ${typeName(type)} in truth`);
    if (database.readSize(location) > largestFile)
      throw fault(`is used as ${file} and is larger than ${largestFile / mebibyte} MiB, which is the limit for such a file`);
    const { data } = database.readAt(location);
    if (database.madeBytes > end)
      throw new GitFault(`the deltas of the pack's ${file} files unfold to far more than they are worth`);
    try {
      if (file === '.gitmodules') checkGitmodules(data, (id, text) => warnings.add(oid, id, text));
      else checkGitattributes(data);
    } catch (error) {
      throw error instanceof GitFault ? fault(error.message) : error;
    }
  }
}
