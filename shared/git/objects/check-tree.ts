import { GitFault } from '#shared/git/git-fault.ts';
import {
  isDotGit,
  isDotGitattributes,
  isDotGitignore,
  isDotGitmodules,
  isDotMailmap,
} from '#shared/git/objects/dot-git-names.ts';
import { oidBytes } from '#shared/git/objects/oid-table.ts';
import { nothingTolerated, tolerableFault } from '#shared/git/objects/tolerable-faults.ts';
import { canonicalMode, modes } from '#shared/git/objects/tree.ts';
import { noWarnings, type WarningSink } from '#shared/git/objects/warnings.ts';

/** Called with each entry: its mode, and the index of its raw id in the tree. Submodules are left out: their commit is elsewhere. */
export type TreeLinkSink = (mode: number, data: Buffer, oidAt: number) => void;

/** Files that git itself reads, so that their content has to be checked too. */
export type SpecialFile = '.gitmodules' | '.gitattributes';

/** Called with each entry that has such a name, whatever it refers to. */
export type SpecialFileSink = (file: SpecialFile, data: Buffer, oidAt: number) => void;

const longestName = 4096;

/**
 * What `git fsck --strict` checks of a tree.
 * @throws GitFault naming the fault, without the object
 */
export function checkTree(
  data: Buffer,
  link: TreeLinkSink,
  special: SpecialFileSink,
  tolerated = nothingTolerated,
  warn = noWarnings,
): void {
  const order = new TreeOrder(data);
  let badModes = false;
  for (let at = 0; at < data.length; ) {
    if (data[at] === 0x30) {
      if (!tolerated.has('zeroPaddedFilemode')) throw tolerableFault('zeroPaddedFilemode', 'contains a zero-padded file mode');
      while (data[at] === 0x30) at++;
    }
    let stated = 0;
    let digits = 0;
    for (; data[at] !== 0x20; at++, digits++) {
      const byte = data[at] ?? 0;
      if (byte < 0x30 || byte > 0x37 || digits === 6) throw new GitFault('contains an entry with a malformed mode (badTree)');
      stated = stated * 8 + byte - 0x30;
    }
    const mode = canonicalMode(stated);
    if (mode === undefined) throw new GitFault(`contains an entry with the mode ${stated.toString(8)}, which git does not have`);
    badModes ||= stated !== mode;
    const nameStart = ++at;
    let nameEnd = nameStart;
    let unusual = data[nameStart] === 0x2e;
    for (let byte = data[nameEnd]; byte !== 0 && byte !== undefined; byte = data[++nameEnd]) {
      // A name can only mean .git to a file system if it begins with ".", or has "~", "\" or a byte that is not ASCII.
      if (byte === 0x2f || byte === 0x7e || byte === 0x5c || byte >= 0x80) unusual = true;
    }
    if (nameEnd + 1 + oidBytes > data.length) throw new GitFault('is cut short (badTree)');
    if (nameEnd === nameStart) throw new GitFault('contains an entry without a name (badTree)');
    if (nameEnd - nameStart > longestName) throw new GitFault(`contains a name of more than ${longestName} bytes`);
    const file = unusual ? checkUnusualName(data.toString('utf8', nameStart, nameEnd), mode, warn) : undefined;
    order.add(nameStart, nameEnd, mode === modes.tree);
    at = nameEnd + 1;
    if (isNull(data, at)) throw new GitFault('contains an entry that points at the null id (nullSha1)');
    if (mode !== modes.submodule) link(mode, data, at);
    if (file !== undefined) special(file, data, at);
    at += oidBytes;
  }
  if (badModes) warn('badFilemode', 'contains bad file modes');
}

function checkUnusualName(name: string, mode: number, warn: WarningSink): SpecialFile | undefined {
  if (name.includes('/')) throw new GitFault('contains a name with a slash (fullPathname)');
  if (name === '.' || name === '..')
    throw new GitFault(`contains an entry named "${name}" (${name === '.' ? 'hasDot' : 'hasDotdot'})`);
  if (isDotGit(name)) throw new GitFault('contains an entry that some file system takes for ".git" (hasDotgit)');
  if (isDotGitmodules(name)) {
    if (mode === modes.symlink) throw new GitFault('contains .gitmodules as a symbolic link (gitmodulesSymlink)');
    return '.gitmodules';
  }
  if (mode !== modes.symlink) return isDotGitattributes(name) ? '.gitattributes' : undefined;
  // git does not read these files when they are symbolic links.
  if (isDotGitattributes(name)) warn('gitattributesSymlink', '.gitattributes is a symlink');
  if (isDotGitignore(name)) warn('gitignoreSymlink', '.gitignore is a symlink');
  if (isDotMailmap(name)) warn('mailmapSymlink', '.mailmap is a symlink');
  return undefined;
}

function isNull(data: Buffer, at: number): boolean {
  for (let i = 0; i < oidBytes; i++) if (data[at + i] !== 0) return false;
  return true;
}

/** Checks the order: names are sorted as if those of directories ended in "/", and no name comes twice, not even as file and directory. */
class TreeOrder {
  readonly #data: Buffer;
  #previousStart = 0;
  #previousEnd = 0;
  #previousIsTree = false;
  /** Files whose name a directory further on could still have: after `a` and `a.b` comes `a/`. */
  readonly #candidates: { start: number; end: number }[] = [];

  constructor(data: Buffer) {
    this.#data = data;
  }

  add(start: number, end: number, isTree: boolean): void {
    const data = this.#data;
    const previousLength = this.#previousEnd - this.#previousStart;
    if (this.#previousEnd > 0) {
      const common = Math.min(previousLength, end - start);
      let i = 0;
      while (i < common && data[this.#previousStart + i] === data[start + i]) i++;
      if (i === previousLength && i === end - start) throw new GitFault('contains two entries of one name (duplicateEntries)');
      const before = i < previousLength ? (data[this.#previousStart + i] ?? 0) : this.#previousIsTree ? 0x2f : 0;
      const after = i < end - start ? (data[start + i] ?? 0) : isTree ? 0x2f : 0;
      if (before > after) throw new GitFault('is not sorted (treeNotSorted)');
      if (i === previousLength && !this.#previousIsTree)
        this.#candidates.push({ start: this.#previousStart, end: this.#previousEnd });
    }
    if (this.#candidates.length > 0) this.#checkCandidates(start, end);
    this.#previousStart = start;
    this.#previousEnd = end;
    this.#previousIsTree = isTree;
  }

  #checkCandidates(start: number, end: number): void {
    const data = this.#data;
    for (let top = this.#candidates.at(-1); top !== undefined; top = this.#candidates.at(-1)) {
      const length = top.end - top.start;
      if (data.compare(data, top.start, top.end, start, Math.min(end, start + length)) !== 0) {
        this.#candidates.pop();
        continue;
      }
      if (end - start === length) throw new GitFault('contains two entries of one name (duplicateEntries)');
      // After `name/` in the order, no directory of that name can follow.
      if ((data[start + length] ?? 0) < 0x2f) break;
      this.#candidates.pop();
    }
  }
}
