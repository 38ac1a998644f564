import { GitFault } from '#shared/git/git-fault.ts';
import type { ObjectType } from '#shared/git/objects/object-type.ts';
import { nothingTolerated, type TolerableFault, type Tolerated, tolerableFault } from '#shared/git/objects/tolerable-faults.ts';
import { noWarnings } from '#shared/git/objects/warnings.ts';
import { refNameProblem } from '#shared/git/refs/ref-name.ts';

/** Called with each object that the checked one refers to. */
export type LinkSink = (type: ObjectType, hex: string) => void;

const oidPattern = /^[0-9a-f]{40}$/i;
/** 2^63 - 1, the last second that git can count. */
const lastSecond = 9_223_372_036_854_775_807n;

/**
 * What `git fsck --strict` checks of a commit.
 * @throws GitFault naming the fault, without the object
 */
export function checkCommit(data: Buffer, link: LinkSink, tolerated = nothingTolerated): void {
  const lines = new HeaderLines(data);
  if (data.includes(0)) throw new GitFault('contains a NUL byte (nulInCommit)');
  link('tree', lines.takeOid('tree'));
  while (lines.startsWith('parent ')) link('commit', lines.takeOid('parent'));
  checkIdentity('author', lines.take('author'), tolerated);
  if (lines.startsWith('author ')) throw new GitFault('has more than one author line (multipleAuthors)');
  checkIdentity('committer', lines.take('committer'), tolerated);
}

/** What `git fsck --strict` checks of an annotated tag. */
export function checkTag(data: Buffer, link: LinkSink, tolerated = nothingTolerated, warn = noWarnings): void {
  const lines = new HeaderLines(data);
  const oid = lines.takeOid('object');
  const type = lines.take('type');
  if (type !== 'commit' && type !== 'tree' && type !== 'blob' && type !== 'tag')
    throw new GitFault('has an unknown type of object (badType)');
  link(type, oid);
  const name = lines.take('tag');
  if (refNameProblem(`refs/tags/${name}`) !== undefined) warn('badTagName', `invalid 'tag' name: ${name}`);
  // Tags of before 2005 have no tagger.
  if (lines.startsWith('tagger ')) checkIdentity('tagger', lines.take('tagger'), tolerated);
  else warn('missingTaggerEntry', "expected 'tagger' line");
}

/** The lines of an object before the first empty one. */
class HeaderLines {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Buffer) {
    const end = data.indexOf('\n\n', 0, 'latin1');
    const header = end < 0 ? data : data.subarray(0, end + 1);
    if (header.includes(0)) throw new GitFault('contains a NUL byte in its header (nulInHeader)');
    if (header.at(-1) !== 0x0a) throw new GitFault('has a header without an end (unterminatedHeader)');
    this.#data = header;
  }

  startsWith(prefix: string): boolean {
    return this.#data.toString('latin1', this.#at, this.#at + prefix.length) === prefix;
  }

  take(keyword: string): string {
    if (!this.startsWith(`${keyword} `)) throw new GitFault(`has no ${keyword} line where one must be`);
    const start = this.#at + keyword.length + 1;
    const end = this.#data.indexOf(0x0a, start);
    this.#at = end + 1;
    return this.#data.toString('latin1', start, end);
  }

  takeOid(keyword: string): string {
    const oid = this.take(keyword);
    if (!oidPattern.test(oid)) throw new GitFault(`has a ${keyword} line without an object id`);
    return oid;
  }
}

/** Only the first fault of a line counts, as in git: the rest of such a line cannot be parsed. */
function checkIdentity(keyword: string, line: string, tolerated: Tolerated): void {
  const [id, what] = identityFault(line) ?? [];
  if (id === undefined || tolerated.has(id)) return;
  throw tolerableFault(id, `has a bad ${keyword} line: ${what}`);
}

/** `Name <email> seconds +zone`, as `fsck_ident` reads it. */
function identityFault(line: string): [id: TolerableFault, what: string] | undefined {
  if (line.startsWith('<')) return ['missingNameBeforeEmail', 'no name before the email'];
  const name = /^[^<>]*/.exec(line)?.[0] ?? '';
  if (line[name.length] === '>') return ['badName', 'a bracket in the name'];
  if (line[name.length] !== '<') return ['missingEmail', 'no email in angle brackets'];
  if (!name.endsWith(' ')) return ['missingSpaceBeforeEmail', 'no space before the email'];
  const email = /^[^<>]*/.exec(line.slice(name.length + 1))?.[0] ?? '';
  const end = name.length + 1 + email.length;
  if (line[end] !== '>') return ['badEmail', 'an email that does not end in an angle bracket'];
  const rest = line.slice(end + 1);
  if (!rest.startsWith(' ')) return ['missingSpaceBeforeDate', 'no space before the date'];
  const [, seconds = '', zone = ''] = /^ [ \t]*(\d+) (.*)$/.exec(rest) ?? [];
  if (seconds === '') return ['badDate', 'no date'];
  if (seconds.length > 1 && seconds.startsWith('0')) return ['zeroPaddedDate', 'a zero-padded date'];
  if (seconds.length > 19 || BigInt(seconds) > lastSecond) return ['badDateOverflow', 'a date that is too large'];
  return /^[+-]\d{4}$/.test(zone) ? undefined : ['badTimezone', 'no valid time zone'];
}
