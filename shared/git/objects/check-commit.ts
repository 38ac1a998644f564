import { GitFault } from '#shared/git/git-fault.ts';
import type { ObjectType } from '#shared/git/objects/object-type.ts';

/** Told of each object that another one needs, by its id in hexadecimal. */
export type LinkSink = (type: ObjectType, hex: string) => void;

const oidPattern = /^[0-9a-f]{40}$/i;
/** 2^63 - 1, the last second that git can count. */
const lastSecond = 9_223_372_036_854_775_807n;

/**
 * What `git fsck --strict` checks of a commit.
 * @throws GitFault naming the fault; whoever calls knows the object
 */
export function checkCommit(data: Buffer, link: LinkSink): void {
  const lines = new HeaderLines(data);
  if (data.includes(0)) throw new GitFault('contains a NUL byte');
  link('tree', lines.takeOid('tree'));
  while (lines.startsWith('parent ')) link('commit', lines.takeOid('parent'));
  checkIdentity('author', lines.take('author'));
  if (lines.startsWith('author ')) throw new GitFault('has more than one author line');
  checkIdentity('committer', lines.take('committer'));
}

/** What `git fsck --strict` checks of an annotated tag. */
export function checkTag(data: Buffer, link: LinkSink): void {
  const lines = new HeaderLines(data);
  const oid = lines.takeOid('object');
  const type = lines.take('type');
  if (type !== 'commit' && type !== 'tree' && type !== 'blob' && type !== 'tag')
    throw new GitFault('has an unknown type of object');
  link(type, oid);
  lines.take('tag');
  // Tags of before 2005 have no tagger.
  if (lines.startsWith('tagger ')) checkIdentity('tagger', lines.take('tagger'));
}

/** The lines before the first empty one. */
class HeaderLines {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Buffer) {
    const end = data.indexOf('\n\n', 0, 'latin1');
    const header = end < 0 ? data : data.subarray(0, end + 1);
    if (header.includes(0)) throw new GitFault('contains a NUL byte in its header');
    if (header.at(-1) !== 0x0a) throw new GitFault('has a header without an end');
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

/** `Name <email> seconds +zone`, as `fsck_ident` reads it. */
function checkIdentity(keyword: string, line: string): void {
  const fault = (what: string): GitFault => new GitFault(`has a bad ${keyword} line: ${what}`);
  if (line.startsWith('<')) throw fault('no name before the email');
  const match = /^([^<>]*)<([^<>]*)>(.*)$/.exec(line);
  if (match === null) throw fault('no email in angle brackets');
  const [, name = '', , rest = ''] = match;
  if (!name.endsWith(' ')) throw fault('no space before the email');
  if (!rest.startsWith(' ')) throw fault('no space before the date');
  const [, seconds = '', zone = ''] = /^ [ \t]*(\d+) (.*)$/.exec(rest) ?? [];
  if (seconds === '') throw fault('no date');
  if (seconds.length > 1 && seconds.startsWith('0')) throw fault('a zero-padded date');
  if (seconds.length > 19 || BigInt(seconds) > lastSecond) throw fault('a date beyond the end of time');
  if (!/^[+-]\d{4}$/.test(zone)) throw fault('no valid time zone');
}
