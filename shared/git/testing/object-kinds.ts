import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { GitFault } from '#shared/git/git-fault.ts';
import { checkCommit, checkTag } from '#shared/git/objects/check-commit.ts';
import { checkGitattributes } from '#shared/git/objects/check-gitattributes.ts';
import { checkGitmodules } from '#shared/git/objects/check-gitmodules.ts';
import { checkTree } from '#shared/git/objects/check-tree.ts';
import type { ObjectType } from '#shared/git/objects/object-type.ts';
import { git, tryGit } from '#shared/git/testing/git-client.ts';
import { mutate } from '#shared/git/testing/mutation.ts';
import { commitOf, objectId, PackBuilder, treeEntry } from '#shared/git/testing/pack-builder.ts';
import { pick, type Random } from '#test/support/random.ts';

/** Makes random objects, valid and not, that both stock git and our checks can judge. */
export interface ObjectKind {
  name: string;
  type: ObjectType;
  make(random: Random): Buffer;
  /** Our check. @throws GitFault */
  check(content: Buffer): void;
  /** The name of a blob's file, which makes git check its content. */
  file?: string;
  /** Our messages for faults that some versions of git accept. */
  stricter?: RegExp;
}

const blob = objectId('blob', 'x');
const folder = treeEntry('100644', 'a', blob);
const tree = objectId('tree', folder);
const nothing = (): void => undefined;
const words = (...texts: readonly string[]): Buffer[] => texts.map((text) => Buffer.from(text));

const names = words(
  ...['.git', 'git~1', '.gitmodules', 'gitmod~1', 'gi7eba~1', 'gi7e~123', '~1234567', '.gitattributes', 'gitatt~2'],
  ...['.g\u200cit', '.git\u200d', '\ufeff.GIT', '.gitmodules\u200e', '.git::$DATA', '.git. .', '..', '.', 'a', 'a.b', 'ab'],
);
const nameParts = words('.', ' ', ':', '\\', '~1', '~', '\u200c', '\ufeff', '1', 'g', '\u0130', '\u017f', '\u212a');

function makeTree(random: Random): Buffer {
  const entries = Array.from({ length: 1 + random(4) }, () => {
    if (random(10) === 0) return { name: Buffer.from(pick(random, ['a', 'ab', 'a.b'])), mode: '40000', oid: tree };
    const name = random(3) === 0 ? pick(random, names) : mutate(pick(random, names), random, nameParts);
    const mode = random(8) === 0 ? pick(random, ['120000', '160000', '100664', '100600', '0100644', '120777']) : '100644';
    return { name: Buffer.from(name.filter((byte) => byte !== 0)), mode, oid: blob };
  });
  if (random(10) > 0) entries.sort((one, other) => one.name.compare(other.name));
  const whole = Buffer.concat(entries.map(({ name, mode, oid }) => treeEntry(mode, name, oid)));
  return random(10) === 0 ? mutate(whole, random) : whole;
}

const headerWords = words('\n', ' ', '<', '>', '\0', '0', '-', 'author ', 'parent ', 'tree ', '\n\n', '+0000', '99999999999');
const commit = Buffer.from(commitOf(tree, `parent ${objectId('commit', commitOf(tree))}`));
const tag = Buffer.from(`object ${blob}\ntype blob\ntag v1\ntagger A <a@example.com> 1700000000 +0000\n\nmessage\n`);
/** git before 2.5x also looks for the date on the next line, and accepts one with a plus. */
const looseDates = /no date/;

const moduleWords = words(
  ...['[submodule "', '"]\n', 'url = ', 'path = -', 'update = !', '..', '../', './', '\\', '"', '\n', '\r\n', '#', ';', '-'],
  ...['%0a', ':', '@', 'http://', 'https::', 'git://', '://', '?', '/', '=', '\0', '[submodule.x]\n', '\t', '\\n', '\\"'],
);
const modules = words(
  '[submodule "lib"]\n\tpath = lib\n\turl = https://user:password@example.com:8080/lib.git\n\tupdate = merge\n',
  '[submodule "../x"]\n\turl = ../../lib.git ; where it is\n[other]\n\tkey\n',
  '[submodule "a/b"]\n\turl = "git://host/\\"x"\n\tpath = "-x"\n[submodule "c"]\n\tupdate = !sh\n\turl = -u\n',
  '[submodule "a"]\n\turl = ./..\\\\..//x\n[submodule "b"]\n\turl = ftp::https://h/%0a\n',
);

/** Every kind of object whose content is checked. */
export const objectKinds: readonly ObjectKind[] = [
  {
    name: 'trees',
    type: 'tree',
    make: makeTree,
    check: (content) => checkTree(content, nothing, nothing),
    stricter: /malformed mode|which git does not have/,
  },
  {
    name: 'commits',
    type: 'commit',
    make: (random) => mutate(commit, random, headerWords),
    check: (content) => checkCommit(content, nothing),
    stricter: looseDates,
  },
  {
    name: 'tags',
    type: 'tag',
    make: (random) => mutate(tag, random, headerWords),
    check: (content) => checkTag(content, nothing),
    stricter: looseDates,
  },
  {
    name: '.gitmodules files',
    type: 'blob',
    file: '.gitmodules',
    // In git's check, byte 255 ends the file and a byte order mark is a syntax error. A checkout reads on.
    make: (random) => Buffer.from(mutate(pick(random, modules), random, moduleWords).filter((byte) => byte !== 255)),
    check: checkGitmodules,
  },
  {
    name: '.gitattributes files',
    type: 'blob',
    file: '.gitattributes',
    make: (random) => {
      const lines = Array.from({ length: 1 + random(3) }, () => 'x'.repeat(random(4) === 0 ? 2040 + random(16) : random(50)));
      return Buffer.from(lines.join(random(9) === 0 ? '\0' : '\n'));
    },
    check: checkGitattributes,
  },
];

/**
 * Makes `count` objects of a kind and has both sides judge them. Returns how many we reject, and a description of each object that
 * only one side rejects.
 */
export async function compareWithGit(
  { type, make, check, file, stricter = /^$/ }: ObjectKind,
  random: Random,
  count: number,
  directory: string,
): Promise<{ rejected: number; differences: string[] }> {
  const contents = Array.from({ length: count }, () => make(random));
  const faults = await faultsByGit(type, contents, file, directory);
  const differences: string[] = [];
  let rejected = 0;
  for (const content of contents) {
    const ours = faultOf(content, check);
    const theirs = faults.get(objectId(type, content));
    if (ours !== undefined) rejected++;
    if ((ours === undefined) === (theirs === undefined) || (theirs === undefined && stricter.test(ours ?? ''))) continue;
    differences.push(`${JSON.stringify(content.toString('latin1'))}\n  git: ${theirs}\n  here: ${ours}`);
  }
  return { rejected, differences };
}

function faultOf(content: Buffer, check: (content: Buffer) => void): string | undefined {
  try {
    check(content);
    return undefined;
  } catch (error) {
    if (!(error instanceof GitFault)) throw new Error(JSON.stringify(content.toString('latin1')), { cause: error });
    return error.message;
  }
}

/** The errors of git's fsck, by id of the object. Runs git once for all objects. */
async function faultsByGit(
  type: ObjectType,
  contents: readonly Buffer[],
  file: string | undefined,
  directory: string,
): Promise<ReadonlyMap<string, string>> {
  const objects = new Map<string, [ObjectType, Buffer | string]>();
  const add = (of: ObjectType, content: Buffer | string): void => void objects.set(objectId(of, content), [of, content]);
  add('blob', 'x');
  add('tree', folder);
  add('commit', commitOf(tree));
  for (const content of contents) {
    add(type, content);
    if (file !== undefined) add('tree', treeEntry('100644', file, objectId(type, content)));
  }
  const builder = new PackBuilder();
  for (const object of objects.values()) builder.add(...object);
  const bare = await mkdtemp(join(directory, 'objects-'));
  try {
    await git(directory, 'init', '-q', '--bare', bare);
    const stored = await tryGit(bare, ['index-pack', '--stdin'], builder.build());
    if (stored.code !== 0) throw new Error(stored.stderr);
    const { stderr } = await tryGit(bare, ['fsck', '--strict', '--full', '--no-dangling']);
    // Links between objects are not compared here.
    const lines = stderr.split('\n').filter((line) => line.startsWith('error') && !/ is a \w+, not a |broken links/.test(line));
    return new Map(lines.flatMap((line) => [...line.matchAll(/[0-9a-f]{40}/g)].map(([oid]) => [oid, line] as const)));
  } finally {
    await rm(bare, { recursive: true, force: true });
  }
}
