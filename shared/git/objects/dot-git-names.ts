/**
 * Recognizes names that are `.git`, or a file that git reads, on some file system although they are spelled differently. A tree
 * with a `.git` would write into the repository of whoever checks it out. The other files are checked under any spelling. The
 * rules are those of git's `is_hfs_dot_generic`, `is_ntfs_dotgit` and `is_ntfs_dot_generic`.
 */

/** Characters that HFS+ ignores anywhere in a name. */
const ignoredByHfs = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

/** Where a name can end on HFS+: at its end, or at bytes that are not text. */
const endOnHfs = '(?:$|[\\ufffd-\\uffff])';

const dotGitOnHfs = new RegExp(`^\\.git${endOnHfs}`, 'i');
const dotGitOnNtfs = /^(?:\.git|git~1)[ .]*(?::|$)/i;

/** Whether the name is `.git` on some file system. */
export function isDotGit(name: string): boolean {
  // On NTFS a backslash is a separator: each part is a name.
  return dotGitOnHfs.test(name.replace(ignoredByHfs, '')) || name.split('\\').some((part) => dotGitOnNtfs.test(part));
}

const gitmodules = spellingsOf('gitmodules', 'gi7eba');
const gitattributes = spellingsOf('gitattributes', 'gi7d29');
const gitignore = spellingsOf('gitignore', 'gi250a');
const mailmap = spellingsOf('mailmap', 'maba30');

/** Whether the name is `.gitmodules` on some file system. */
export function isDotGitmodules(name: string): boolean {
  if (matches(name, gitmodules)) return true;
  for (let at = name.indexOf('\\'); at >= 0; at = name.indexOf('\\', at + 1)) {
    if (gitmodules.ntfs.test(name.slice(at + 1))) return true;
  }
  return false;
}

/** Whether the name is `.gitattributes` on some file system. */
export function isDotGitattributes(name: string): boolean {
  return matches(name, gitattributes);
}

/** Whether the name is `.gitignore` on some file system. */
export function isDotGitignore(name: string): boolean {
  return matches(name, gitignore);
}

/** Whether the name is `.mailmap` on some file system. */
export function isDotMailmap(name: string): boolean {
  return matches(name, mailmap);
}

function matches(name: string, { hfs, ntfs }: { hfs: RegExp; ntfs: RegExp }): boolean {
  return ntfs.test(name) || hfs.test(name.replace(ignoredByHfs, ''));
}

/**
 * @param name without its dot
 * @param hashed prefix of NTFS's short names when those made of the name's own letters are taken
 */
function spellingsOf(name: string, hashed: string): { hfs: RegExp; ntfs: RegExp } {
  const hashedBeginning = [...hashed].reduceRight((rest, letter) => `(?:${letter}${rest})?`, '');
  const shortNames = `${name.slice(0, 6)}~[1-4]|(?=[^ .:]{8}(?:[ .:]|$))${hashedBeginning}~[1-9]\\d*`;
  return {
    hfs: new RegExp(`^\\.${name}${endOnHfs}`, 'i'),
    ntfs: new RegExp(`^(?:\\.${name}|${shortNames})[ .]*(?::|$)`, 'i'),
  };
}
