import { GitFault } from '#shared/git/git-fault.ts';

/** git ignores longer lines. */
const longestLine = 2047;

/**
 * What git's fsck checks of a `.gitattributes` file.
 * @throws GitFault naming the fault, without the object
 */
export function checkGitattributes(file: Buffer): void {
  // For git the file ends at the first NUL byte.
  const nul = file.indexOf(0);
  const end = nul < 0 ? file.length : nul;
  for (let start = 0; start < end; ) {
    const newline = file.indexOf(0x0a, start);
    const lineEnd = newline < 0 || newline > end ? end : newline;
    if (lineEnd - start > longestLine)
      throw new GitFault(`is used as .gitattributes and has a line of more than ${longestLine} bytes`);
    start = lineEnd + 1;
  }
}
