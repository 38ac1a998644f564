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
 * Checks the content of files that git itself reads. This happens after the whole pack was received, because a blob can come
 * before the tree that names it, or can be in the repository under another name.
 *
 * @param largestWork how many bytes may be read in all: a bad order of deltas can make the same bases be built again and again
 * @throws GitFault naming the object when it is invalid, missing, or not a blob
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
      throw fault(`is used as ${file}, but was neither sent nor is in the repository`);
    if (type !== objectTypes.blob) throw fault(`is used as ${file}, but is a ${typeName(type)}`);
    if (database.readSize(location) > largestFile)
      throw fault(`is used as ${file} and is larger than ${largestFile / mebibyte} MiB, which is the limit for such a file`);
    const { data } = database.readAt(location);
    if (database.madeBytes > end) throw new GitFault(`the deltas of the pack's ${file} files expand to too many bytes`);
    try {
      if (file === '.gitmodules') checkGitmodules(data, (id, text) => warnings.add(oid, id, text));
      else checkGitattributes(data);
    } catch (error) {
      throw error instanceof GitFault ? fault(error.message) : error;
    }
  }
}
