import { ByteReader } from '#shared/byte-reader.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import { checkCommit, checkTag } from '#shared/git/objects/check-commit.ts';
import { checkGitattributes } from '#shared/git/objects/check-gitattributes.ts';
import { checkGitmodules } from '#shared/git/objects/check-gitmodules.ts';
import { checkTree } from '#shared/git/objects/check-tree.ts';
import { parseCommit } from '#shared/git/objects/parse-commit.ts';
import { parseTag } from '#shared/git/objects/parse-tag.ts';
import { modes, TreeCursor } from '#shared/git/objects/tree.ts';
import { applyDelta, readDeltaHead } from '#shared/git/packs/format/delta.ts';
import { encodePacket, flushPacket, packetText, readPacket } from '#shared/git/protocol/pkt-line.ts';
import { readReceivePackRequest } from '#shared/git/receive-pack/push-protocol.ts';
import { isWritableRef, refNameProblem } from '#shared/git/refs/ref-name.ts';
import { cut, streamed } from '#shared/git/testing/mutation.ts';
import { commitOf, copyInstruction, deltaOf, treeEntry } from '#shared/git/testing/pack-builder.ts';
import { addFetchLine, emptyFetchRequest } from '#shared/git/upload-pack/fetch-request.ts';
import { assertTrue, words } from '#test/fuzz/git/assert-true.ts';
import type { FuzzTarget } from '#test/fuzz/git/engine.ts';
import { createRandom } from '#test/support/random.ts';

const id = (digit: string): string => digit.repeat(40);

/** In one chunk, or in small ones. That depends on the input alone. */
function readerOf(input: Buffer): ByteReader {
  const pieces = input.length % 4 === 0 ? cut(input, createRandom(input.length)) : [input];
  return new ByteReader(streamed(pieces));
}

const packets = words(
  '0000',
  '0001',
  '0002',
  '0003',
  '0004',
  '0005',
  'ffff',
  'FFF0',
  '000g',
  `${id('0')} ${id('a')} refs/heads/x`,
  '\0',
  '\n',
);

const pktLine: FuzzTarget = {
  name: 'pkt-line',
  share: 2,
  seeds: [Buffer.concat([encodePacket('hello\n'), flushPacket, encodePacket('x'.repeat(200)), Buffer.from('00010002')])],
  words: packets,
  async run(input) {
    const reader = readerOf(input);
    let bytes = 0;
    for (let packet = await readPacket(reader); packet !== 'end'; packet = await readPacket(reader))
      bytes += 4 + (typeof packet === 'string' ? 0 : packet.length);
    assertTrue(bytes === input.length, 'every byte belongs to a packet');
  },
};

const commands: FuzzTarget = {
  name: 'commands',
  share: 3,
  seeds: [
    Buffer.concat([
      encodePacket(`shallow ${id('c')}\n`),
      encodePacket(`${id('0')} ${id('a')} refs/heads/main\0report-status side-band-64k atomic push-options agent=git/2\n`),
      encodePacket(`${id('a')} ${id('b')} refs/heads/other\n`),
      flushPacket,
      encodePacket('detach\n'),
      flushPacket,
    ]),
    Buffer.concat([
      encodePacket(`${id('a')} ${id('0')} refs/tags/v1\0 delete-refs report-status-v2 object-format=sha256`),
      flushPacket,
    ]),
  ],
  words: [...packets, ...words('push-options', 'object-format=sha1', 'shallow ', id('d'))],
  async run(input) {
    const request = await readReceivePackRequest(readerOf(input), 100);
    for (const { oldOid, newOid, name } of request?.changes ?? []) {
      for (const oid of [oldOid, newOid]) assertTrue(oid === undefined || /^[0-9a-f]{40}$/.test(oid), 'ids are ids');
      assertTrue(!name.includes('\0'), 'names end before a NUL byte');
    }
    assertTrue(
      new Set(request?.changes.map(({ name }) => name)).size === (request?.changes.length ?? 0),
      'each ref is named once',
    );
    for (const oid of request?.shallow ?? []) assertTrue(/^[0-9a-f]{40}$/.test(oid), 'shallow commits are ids');
  },
};

const fetchRequest: FuzzTarget = {
  name: 'fetch-request',
  share: 2,
  seeds: [
    `want ${id('a')}\nhave ${id('b')}\nshallow ${id('c')}\ndeepen 3\ndeepen-relative\nthin-pack\nofs-delta\ndone`,
    `want ${id('a')}\nfilter blob:limit=10k\ndeepen-since 1700000000\ninclude-tag\nno-progress\nwait-for-done`,
    `want ${id('a')}\nfilter tree:3\ndeepen-not refs/heads/main\ndeepen-not v1\nfilter blob:none`,
  ].map((text) => Buffer.from(text)),
  words: words(
    'want ',
    'have ',
    'shallow ',
    'deepen ',
    'deepen-since ',
    'deepen-not ',
    'filter ',
    'blob:none',
    'tree:',
    '\n',
    id('e'),
    '999999999999999',
  ),
  run(input) {
    const request = emptyFetchRequest();
    for (const line of packetText(input).split('\n')) addFetchLine(request, line);
    for (const oid of [...request.wants, ...request.haves, ...request.shallow])
      assertTrue(/^[0-9a-f]{40}$/.test(oid), 'ids are ids');
    const { deepen, filter } = request;
    if (deepen?.kind === 'depth') assertTrue(Number.isSafeInteger(deepen.depth), 'a depth is a number');
    if (filter.kind === 'blob-limit') assertTrue(filter.bytes >= 0, 'a limit is a number');
  },
};

const refNames: FuzzTarget = {
  name: 'ref-names',
  seeds: words('refs/heads/main', 'refs/tags/v1.0', 'refs/notes/a/b', 'refs/heads/-x', 'refs/heads/a.lock/b'),
  words: words('refs/', 'heads/', '..', '@{', '.lock', '/', '.', '\\', '\x7f', '\0', ' ', '\xff', '~', '^', ':', '?', '*', '['),
  run(input) {
    const name = input.toString('utf8');
    if (refNameProblem(name) !== undefined) throw new GitFault('not a name');
    assertTrue(!/[\0-\x20\x7f]|\.\.|\/\/|\/\.|@\{|\.lock(\/|$)|[/.]$/.test(name), `${JSON.stringify(name)} is the name of a ref`);
    if (isWritableRef(name)) assertTrue(/^refs\/(heads|tags|notes)\/[^/]/.test(name), 'a writable ref is a branch, tag or note');
  },
};

const delta: FuzzTarget = {
  name: 'delta',
  seeds: [
    deltaOf(
      440,
      120,
      Buffer.concat([copyInstruction(10, 60), Buffer.from([20]), Buffer.alloc(20, 'x'), copyInstruction(300, 40)]),
    ),
    deltaOf(440, 440, Buffer.from([0x90, 0xb8, 0xb1, 0x90, 0xb8, 0x01])),
  ],
  words: [Buffer.from([0x80]), Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff]), Buffer.from([0]), Buffer.from([127])],
  run(input) {
    const base = Buffer.alloc(440, 'the quick brown fox ');
    const head = readDeltaHead(input);
    if (head.resultSize > 1_000_000) throw new GitFault('larger than any limit');
    const fenced = Buffer.alloc(head.resultSize + 32, 0xee);
    applyDelta(base, input, head, fenced, 16);
    for (let i = 0; i < 16; i++) {
      assertTrue(fenced[i] === 0xee && fenced[head.resultSize + 16 + i] === 0xee, 'a delta writes inside its result');
    }
  },
};

const objects: FuzzTarget = {
  name: 'objects',
  // The first byte is the type.
  seeds: [
    Buffer.concat([
      Buffer.from('0'),
      treeEntry('100644', '.gitmodules', id('a')),
      treeEntry('120000', 'b', id('a')),
      treeEntry('40000', 'b.c', id('b')),
      treeEntry('160000', 'd', id('c')),
    ]),
    Buffer.from(`1${commitOf(id('a'), `parent ${id('b')}`, `parent ${id('c')}`)}`),
    Buffer.from(`2object ${id('a')}\ntype commit\ntag v1\ntagger A <a@example.com> 1700000000 +0000\n\nmessage\n`),
    Buffer.from(
      '3[submodule "a"]\n\tpath = "lib" ; here\n\turl = ../x.git\n\tupdate = rebase\n[submodule.b]\nurl=https://u:p@h:1/x\n',
    ),
    Buffer.from(`4${'* text=auto\n'.repeat(5)}`),
  ],
  words: words(
    '\0',
    '\n',
    '<',
    '>',
    '0',
    ' ',
    '"',
    '\\',
    '[',
    ']',
    '=',
    '.git',
    '.gitmodules',
    'git~1',
    '40000 ',
    '120000 ',
    'author ',
    '\xff',
    '\xe2\x80\x8c',
  ),
  run(input) {
    const content = input.subarray(1);
    const kind = (input[0] ?? 0) % 5;
    let links = 0;
    const count = (): void => {
      links++;
    };
    if (kind === 3) {
      checkTree(content, count, () => undefined);
      let entries = 0;
      for (const cursor = new TreeCursor(content); cursor.next(); ) if (cursor.mode !== modes.submodule) entries++;
      assertTrue(entries === links, 'a tree has the entries that were checked');
    } else if (kind === 4) {
      checkCommit(content, count);
      const { tree, parents, time } = parseCommit(content);
      assertTrue(
        tree.length === 20 && parents.every(({ length }) => length === 20) && parents.length + 1 === links,
        'a commit is read as it was checked',
      );
      assertTrue(Number.isFinite(time), 'a time is a number');
    } else if (kind === 0) {
      checkTag(content, count);
      const { oid, type } = parseTag(content);
      assertTrue(oid.length === 20 && ['commit', 'tree', 'blob', 'tag'].includes(type), 'a tag is read as it was checked');
    } else if (kind === 1) {
      checkGitmodules(content);
    } else {
      checkGitattributes(content);
    }
  },
};

/** Parsers of git's formats and protocol. */
export const parserTargets: readonly FuzzTarget[] = [pktLine, commands, fetchRequest, refNames, delta, objects];
