/**
 * Names that some file system takes for `.git` or `.gitmodules` though they are spelled otherwise. A tree that has one
 * would write into the repository of whoever checks it out. The rules are those of git's `is_hfs_dotgit`,
 * `is_ntfs_dotgit` and `is_ntfs_dot_generic`.
 */

/** HFS+ ignores these, wherever they are in a name. */
const ignoredByHfs = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

export function isDotGit(name: string): boolean {
  if (asOnHfs(name) === '.git') return true;
  // On NTFS a backslash separates: each part is a name of its own.
  return name.split('\\').some((part) => /^(\.git|git~1)[ .]*(:.*)?$/is.test(part.split('/')[0] ?? ''));
}

export function isDotGitmodules(name: string): boolean {
  if (asOnHfs(name) === '.gitmodules') return true;
  const bare = name
    .replace(/:.*$/s, '')
    .replace(/[ .]+$/, '')
    .toLowerCase();
  // Short names: the first four, and those that Windows makes when these are taken.
  return (
    bare === '.gitmodules' ||
    /^gitmod~[1-4]$/.test(bare) ||
    (bare.length === 8 && /^(g|gi|gi7|gi7e|gi7eb|gi7eba)[0-9a-f]*~[1-9]\d*$/.test(bare))
  );
}

function asOnHfs(name: string): string {
  return name.replace(ignoredByHfs, '').toLowerCase();
}
