/** What is wrong with the name of a ref, by the rules of git-check-ref-format(1); undefined when it is valid. */
export function refNameProblem(name: string): string | undefined {
  if (name.length > 1024) return 'is too long';
  if (/[\0-\x20\x7f~^:?*[\\]/.test(name)) return 'contains a character that git does not allow there';
  if (name.includes('..')) return 'contains ".."';
  if (name.includes('@{')) return 'contains "@{"';
  if (name.endsWith('.')) return 'ends in "."';
  const parts = name.split('/');
  if (parts.length < 2 || parts.some((part) => part === '')) return 'has an empty part';
  if (parts.some((part) => part.startsWith('.'))) return 'has a part that begins with "."';
  if (parts.some((part) => part.endsWith('.lock'))) return 'has a part that ends in ".lock"';
  if (name.includes('\ufffd')) return 'is not UTF-8';
  return undefined;
}

/** Prefixes of the refs that a push may write. */
const writable = ['refs/heads/', 'refs/tags/', 'refs/notes/'];

/** Whether a push may write this ref. @param name a valid name */
export function isWritableRef(name: string): boolean {
  // "git branch" refuses these too: commands take the first for an option, and every repository has a HEAD of its own.
  return writable.some((prefix) => name.startsWith(prefix)) && !name.startsWith('refs/heads/-') && name !== 'refs/heads/HEAD';
}
