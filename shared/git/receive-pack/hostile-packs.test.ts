import { deflateSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gitIndexers } from '#shared/git/git-indexers.ts';
import { encodeEntryHeader } from '#shared/git/packs/format/pack-entry.ts';
import { createFakeGitStorage } from '#shared/git/storage/fake-git-storage.ts';
import { tryGit } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import { commitOf, copyInstruction, deltaOf, objectId, PackBuilder, seal, treeEntry } from '#shared/git/testing/pack-builder.ts';
import { pushRaw } from '#shared/git/testing/raw-push.ts';
import { createLog } from '#shared/log.ts';
import { createRandom } from '#test/support/random.ts';

describe.each(gitIndexers)('by the %s indexer', (indexer) => {
  let fixture: GitFixture;
  beforeAll(async () => {
    fixture = await createGitFixture('postgres', { indexer });
  });
  afterAll(async () => {
    await fixture.close();
  });

  const blob = objectId('blob', 'x');

  /** Pushes a pack to a new repository. A rejected one must leave nothing behind. */
  async function push(pack: Buffer, tip: string): Promise<string[]> {
    const id = fixture.newRepository();
    const change = { name: 'refs/heads/main', to: tip };
    const lines = await pushRaw(fixture.storage, id, { change, pack, applyPush: fixture.applyPush(id) });
    expect(await fixture.listQuarantines(id)).toEqual([]);
    const refs = await fixture.storage.refs.listRefs(id);
    if (lines[0] === 'unpack ok' && lines[1]?.startsWith('ok ') === true) expect(refs.length).toBe(1);
    else expect(refs).toEqual([]);
    return lines;
  }

  function withTree(tree: Buffer): { pack: Buffer; tip: string } {
    const builder = new PackBuilder();
    builder.add('blob', 'x');
    const tip = builder.add('commit', commitOf(builder.add('tree', tree)));
    return { pack: builder.build(), tip };
  }

  function withCommit(content: string): { pack: Buffer; tip: string } {
    const builder = new PackBuilder();
    builder.add('blob', 'x');
    builder.add('tree', treeEntry('100644', 'a', blob));
    return { tip: builder.add('commit', content), pack: builder.build() };
  }

  const tree = objectId('tree', treeEntry('100644', 'a', blob));

  it('accepts a valid pack from the same builder', async () => {
    const { pack, tip } = withTree(treeEntry('100644', 'a', blob));
    expect(await push(pack, tip)).toEqual(['unpack ok', 'ok refs/heads/main']);
  });

  describe('a tree is rejected', () => {
    const names = [
      '.git',
      '.GIT',
      '.Git',
      'git~1',
      'GIT~1',
      '.git ',
      '.git.',
      '.git. .',
      '.git::$INDEX_ALLOCATION',
      '.g\u200cit',
      '\ufeff.git',
      '.gi\u200dT',
      '..',
      '.',
      'a/b',
      'x\\.git',
      '',
    ];
    it.each(names)('with an entry named %j', async (name) => {
      const { pack, tip } = withTree(treeEntry('100644', name, blob));
      const [unpack] = await push(pack, tip);
      expect(unpack).toMatch(/^unpack tree [0-9a-f]{40} contains /);
    });

    const entry = (mode: string, name: string): Buffer => treeEntry(mode, name, blob);
    it.each([
      ['two entries of one name', [entry('100644', 'a'), entry('100644', 'a')], 'two entries of one name'],
      [
        'a file and a directory of one name',
        [entry('100644', 'a'), entry('100644', 'a.b'), entry('40000', 'a')],
        'two entries of one name',
      ],
      ['entries out of order', [entry('100644', 'b'), entry('100644', 'a')], 'not sorted'],
      ['a mode that git does not have', [entry('20644', 'a')], 'mode 20644'],
      ['a zero-padded mode', [entry('0100644', 'a')], 'zero-padded'],
      ['a mode that is not a number', [entry('1006x4', 'a')], 'malformed mode'],
      ['the null id', [treeEntry('100644', 'a', '0'.repeat(40))], 'null id'],
      ['a missing end', [entry('100644', 'a').subarray(0, 20)], 'cut short'],
      ['a symbolic link for .gitmodules', [entry('120000', '.gitmodules')], '.gitmodules as a symbolic link'],
      ['a short name of .gitmodules as a link', [entry('120000', 'GITMOD~1')], '.gitmodules as a symbolic link'],
      ['a missing file', [treeEntry('100644', 'a', '1'.repeat(40))], 'is needed, but was neither sent nor is in the repository'],
      ['a file used as a directory', [entry('40000', 'a')], 'is in fact a blob'],
    ])('with %s', async (_what, entries, fault) => {
      const { pack, tip } = withTree(Buffer.concat(entries));
      const [unpack] = await push(pack, tip);
      expect(unpack).toContain(fault);
    });
  });

  describe('a commit is rejected', () => {
    const good = commitOf(tree);
    it.each([
      ['no tree', good.replace(/^tree .*\n/, ''), 'no tree line'],
      ['a tree line without an id', good.replace(/^tree ..../, 'tree zzzz'), 'without an object id'],
      ['no author', good.replace(/^author .*\n/m, ''), 'no author line'],
      ['two authors', good.replace(/^(author .*\n)/m, '$1$1'), 'more than one author'],
      ['no committer', good.replace(/^committer .*\n/m, ''), 'no committer line'],
      ['an email without brackets', good.replace('<a@example.com>', 'a@example.com'), 'no email'],
      ['no space before the email', good.replace('A <', 'A<'), 'no space before the email'],
      ['no date', good.replace('1700000000 ', ''), 'no'],
      ['a zero-padded date', good.replace('1700000000', '01700000000'), 'zero-padded date'],
      ['a date that is too large', good.replace('1700000000', '99999999999999999999'), 'a date that is too large'],
      ['a bad time zone', good.replace('+0000', '+00:00'), 'time zone'],
      ['a NUL byte', good.replace('message', 'mess\0age'), 'NUL'],
      [
        'a missing parent',
        commitOf(tree, `parent ${'2'.repeat(40)}`),
        'is needed, but was neither sent nor is in the repository',
      ],
      ['a header without an end', good.trimEnd().split('\n\n')[0] ?? '', 'without an end'],
    ])('with %s', async (_what, content, fault) => {
      const { pack, tip } = withCommit(content);
      const [unpack] = await push(pack, tip);
      expect(unpack).toMatch(/^unpack commit [0-9a-f]{40} /);
      expect(unpack).toContain(fault);
    });
  });

  describe('a pack is rejected', () => {
    const { pack, tip } = withTree(treeEntry('100644', 'a', blob));
    const body = pack.subarray(0, -20);
    const cases: readonly [string, () => Buffer, string][] = [
      ['that ends too early', () => pack.subarray(0, -30), 'ended in the middle'],
      ['that is not a pack', () => Buffer.from('POCK and so on, for long enough to be read'), 'not a pack'],
      ['with a wrong checksum', () => Buffer.concat([body, Buffer.alloc(20)]), 'checksum'],
      ['followed by other bytes', () => Buffer.concat([pack, Buffer.from('more')]), 'bytes after the end of the pack'],
      [
        'that states more objects than allowed',
        () => seal(Buffer.concat([body.subarray(0, 8), Buffer.from('ffffffff', 'hex'), body.subarray(12)])),
        'more than',
      ],
      ['with an object twice', () => builderWith((b) => [b.add('blob', 'x'), b.add('blob', 'x')]), 'twice'],
      [
        'with an object larger than it states',
        () => builderWith((b) => b.entry(encodeEntryHeader(3, 10), deflateSync(Buffer.alloc(10_000_000)))),
        'larger than it states',
      ],
      [
        'with an object smaller than it states',
        () => builderWith((b) => b.entry(encodeEntryHeader(3, 5000), deflateSync('x'))),
        'smaller than it states',
      ],
      [
        'with an object beyond the limit',
        () => builderWith((b) => b.entry(encodeEntryHeader(3, 2 ** 40), deflateSync('x'))),
        'MiB',
      ],
      [
        'with bytes that are not compressed',
        () => builderWith((b) => b.entry(encodeEntryHeader(3, 5), Buffer.from('hello there'))),
        'compressed data',
      ],
      [
        'with a delta without a base',
        () => builderWith((b) => b.offsetDelta(3, deltaOf(1, 1, copyInstruction(0, 1)))),
        'has no base in the pack',
      ],
      [
        'with deltas based on each other',
        () =>
          builderWith((b) => {
            b.referenceDelta('1'.repeat(40), deltaOf(1, 1, copyInstruction(0, 1)));
            b.referenceDelta('2'.repeat(40), deltaOf(1, 1, copyInstruction(0, 1)));
          }),
        'without a base',
      ],
      [
        'with a delta that reaches outside of its base',
        () =>
          builderWith((b) => {
            const at = b.entry(encodeEntryHeader(3, 1), deflateSync('y'));
            b.offsetDelta(at, deltaOf(1, 100, copyInstruction(0, 100)));
          }),
        'outside of its base',
      ],
      [
        'with an empty delta, shorter than git accepts',
        () =>
          builderWith((b) => {
            const at = b.entry(encodeEntryHeader(3, 1), deflateSync('y'));
            b.offsetDelta(at, deltaOf(1, 0, Buffer.alloc(0)));
          }),
        'a delta is too short',
      ],
      [
        'with a delta whose result is beyond the limit',
        () =>
          builderWith((b) => {
            const at = b.entry(encodeEntryHeader(3, 1), deflateSync('y'));
            b.offsetDelta(at, deltaOf(1, 2 ** 31, copyInstruction(0, 1)));
          }),
        'MiB',
      ],
      [
        'with an endless chain of deltas',
        () =>
          builderWith((b) => {
            let at = b.entry(encodeEntryHeader(3, 1), deflateSync('y'));
            for (let i = 0; i < 5000; i++)
              at = b.offsetDelta(at, deltaOf(i + 1, i + 2, Buffer.concat([copyInstruction(0, i + 1), Buffer.of(1, 0x41)])));
          }),
        'chain of more than',
      ],
    ];
    it.each(cases)('%s', async (_what, make, fault) => {
      const [unpack] = await push(make(), tip);
      expect(unpack).toContain(fault);
    });

    it.each([
      ['a delta of itself', ['one'], ['one']],
      ['deltas of each other', ['one', 'another'], ['another', 'one']],
    ])('that makes objects of the repository %s, which could never be read again', async (_what, bases, results) => {
      const stored = new PackBuilder();
      for (const name of bases) stored.add('blob', name);
      const commit = stored.add('commit', commitOf(stored.add('tree', treeEntry('100644', 'a', objectId('blob', 'one')))));
      const id = fixture.newRepository();
      const pushTo = (name: string, pack: Buffer) =>
        pushRaw(fixture.storage, id, { change: { name, to: commit }, pack, applyPush: fixture.applyPush(id) });
      expect(await pushTo('refs/heads/main', stored.build())).toEqual(['unpack ok', 'ok refs/heads/main']);
      const thin = builderWith((b) => {
        for (const [i, base] of bases.entries()) {
          const result = results[i] ?? '';
          const instructions = Buffer.concat([Buffer.of(result.length), Buffer.from(result)]);
          b.referenceDelta(objectId('blob', base), deltaOf(base.length, result.length, instructions));
        }
      });
      const [unpack] = await pushTo('refs/heads/other', thin);
      expect(unpack).toMatch(/^unpack blob [0-9a-f]{40} is in the pack twice/);
      expect(await fixture.listQuarantines(id)).toEqual([]);
    });

    it('that expands to far too many bytes, within bounded memory and time', async () => {
      // A megabyte copied into each of some thousand results of 64 MiB: a pack of a few hundred kilobytes for 100 GB of work.
      const base = Buffer.alloc(1024 * 1024, 7);
      const copies = Buffer.concat(Array.from({ length: 64 }, (_, i) => Buffer.concat([copyInstruction(i, 1000 * 1000)])));
      const bomb = builderWith((b) => {
        const at = b.entry(encodeEntryHeader(3, base.length), deflateSync(base));
        for (let i = 0; i < 1500; i++)
          b.offsetDelta(at, deltaOf(base.length, 64_000_001, Buffer.concat([copies, Buffer.of(1, i & 255)])));
      });
      const before = process.memoryUsage.rss();
      const started = performance.now();
      const [unpack] = await push(bomb, tip);
      expect(unpack).toMatch(/the deltas of the pack expand to too many bytes|twice/);
      expect(process.memoryUsage.rss() - before).toBeLessThan(512 * 1024 * 1024);
      expect(performance.now() - started).toBeLessThan(60_000);
    });
  });

  function builderWith(fill: (builder: PackBuilder) => unknown): Buffer {
    const builder = new PackBuilder();
    fill(builder);
    return builder.build();
  }

  it('never crashes on a pack with changed bytes, and accepts none that stock git rejects', async () => {
    const builder = new PackBuilder();
    const lines = Array.from({ length: 40 }, (_, i) => `line ${i}`).join('\n');
    const file = builder.add('blob', lines);
    const folder = builder.add('tree', Buffer.concat([treeEntry('100644', 'a', file), treeEntry('100755', 'b', file)]));
    const first = builder.add('commit', commitOf(folder));
    const tip = builder.add('commit', commitOf(folder, `parent ${first}`));
    builder.referenceDelta(
      file,
      deltaOf(lines.length, lines.length + 1, Buffer.concat([copyInstruction(0, lines.length), Buffer.of(1, 0x41)])),
    );
    const whole = builder.build();
    const storage = createFakeGitStorage({
      directory: `${fixture.directory}/mutations`,
      log: createLog('warn', (line) => logged.push(line)),
      threads: 1,
      indexer,
    });
    const logged: string[] = [];
    let accepted = 0;
    const random = createRandom(12345);
    for (let round = 0; round < 600; round++) {
      const mutated = Buffer.from(whole.subarray(0, -20));
      for (let change = 0; change <= random(3); change++) mutated[random(mutated.length)] = random(256);
      const id = fixture.newRepository();
      const lines = await pushRaw(storage, id, {
        change: { name: 'refs/heads/main', to: tip },
        pack: seal(mutated),
        async applyPush({ commands, pack }) {
          await pack?.admit(fixture.db);
          return commands.map(({ name }) => ({ name, status: 'ok' as const }));
        },
        pieceBytes: 1 + random(400),
      });
      expect(lines.length, `round ${round}`).toBe(2);
      if (lines[0] === 'unpack ok' && lines[1] === 'ok refs/heads/main') {
        const theirs = await tryGit(await fixture.exportBare(id), ['index-pack', '--strict', '--stdin'], seal(mutated));
        expect({ round, ...theirs }).toMatchObject({ round, code: 0 });
        accepted++;
      }
    }
    await storage.close();
    // Some bytes do not matter, such as the compression level in a stream's head: not every change makes a pack invalid.
    expect(accepted).toBeGreaterThan(0);
    expect(logged).toEqual([]);
  });
});
