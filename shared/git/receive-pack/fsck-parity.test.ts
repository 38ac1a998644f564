import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodePacket, flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { fsckCases } from '#shared/git/testing/fsck-cases.ts';
import { git, tryGit } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import { commitOf, copyInstruction, deltaOf, objectId, PackBuilder, treeEntry } from '#shared/git/testing/pack-builder.ts';
import { pushRaw } from '#shared/git/testing/raw-push.ts';
import type { RepositoryId } from '#shared/ids.ts';

let fixture: GitFixture;
let bare: string;
let repository: RepositoryId;
/** Ids of messages that the git of this machine knows. */
let known: ReadonlySet<string>;
beforeAll(async () => {
  fixture = await createGitFixture('memory');
  bare = `${fixture.directory}/theirs.git`;
  await git(fixture.directory, 'init', '-q', '--bare', bare);
  repository = fixture.newRepository();
  const listed = await git(fixture.directory, 'help', '--config');
  known = new Set(listed.split('\n').flatMap((line) => (line.startsWith('fsck.') ? line.slice('fsck.'.length) : [])));
});
afterAll(async () => {
  await fixture.close();
});

const none = '0'.repeat(40);

/** Pushes to `git receive-pack` with transfer.fsckObjects. */
async function pushToGit(name: string, tip: string, pack: Buffer): Promise<{ accepted: boolean; output: string }> {
  const options = ['-c', 'transfer.fsckObjects=true', '-c', 'receive.unpackLimit=1', '-c', 'core.bigFileThreshold=16m'];
  const sent = Buffer.concat([encodePacket(`${none} ${tip} ${name}\0report-status`), flushPacket, pack]);
  const { stdout, stderr } = await tryGit(bare, [...options, 'receive-pack', '--stateless-rpc', bare], sent);
  return { accepted: stdout.includes(`ok ${name}`), output: stdout + stderr };
}

async function pushToUs(name: string, tip: string, pack: Buffer): Promise<{ accepted: boolean; output: string }> {
  const lines = await pushRaw(fixture.storage, repository, {
    change: { name, to: tip },
    pack,
    applyPush: fixture.applyPush(repository),
  });
  expect(await fixture.listQuarantines(repository)).toEqual([]);
  return { accepted: lines.includes(`ok ${name}`), output: lines.join('\n') };
}

/** git finds these in its connectivity check, which words them differently. */
const unnamed = new Set(['gitmodulesMissing', 'gitattributesMissing']);
/** git reports these only when configured to. */
const silent = new Set(['extraHeaderEntry']);

it.each(fsckCases.map(([id, what, make], number) => ({ id, what, make, number })))(
  'gives the same verdict as git: $id $what',
  async ({ id, make, number }) => {
    if (id !== '' && !known.has(id)) return;
    const builder = new PackBuilder();
    const [type, content] = make(builder);
    const tip = builder.add(type, content);
    const pack = builder.build();
    const name = `refs/tags/case-${number}`;
    const theirs = await pushToGit(name, tip, pack);
    // git rejects a commit or tag that cannot be parsed before its fsck.
    if (id !== '' && !unnamed.has(id) && !silent.has(id))
      expect(theirs.output).toMatch(new RegExp(`${id}: |invalid (commit|tag)$`, 'm'));
    else expect(theirs.output).not.toMatch(/(error|warning): object/);
    const ours = await pushToUs(name, tip, pack);
    expect(ours, theirs.output).toMatchObject({ accepted: theirs.accepted });
    // The rejected object is named.
    if (!ours.accepted) expect(ours.output).toMatch(/^unpack (commit|tree|tag|blob) [0-9a-f]{40} /);
  },
);

it('has a case for each message of git 2.39 that an object can cause', () => {
  const cannotBe = [
    // git checks the end of the header's last line first.
    ...['missingTag', 'missingType'],
    // git finds the tree malformed first, and a pack has no other types.
    ...['emptyName', 'unknownType'],
    // A setting, not a message.
    'skipList',
  ];
  // Later versions also check refs in files, which we do not have, and what the tests of trees cover.
  const later = [...known].filter((id) => /Ref|Head|Packed|largePathname|Gpgsig|Continuation/i.test(id));
  const covered = new Set([...fsckCases.map(([id]) => id), ...cannotBe, ...later]);
  expect([...known].filter((id) => !covered.has(id))).toEqual([]);
});

it('checks a .gitmodules whose blob was in the repository before, as a file with another name', async () => {
  const first = new PackBuilder();
  const blob = first.add('blob', '[submodule "a"]\n\tpath = -old\n');
  const harmless = first.add('commit', commitOf(first.add('tree', treeEntry('100644', 'notes.txt', blob))));
  const second = new PackBuilder();
  const named = second.add(
    'commit',
    commitOf(second.add('tree', treeEntry('100644', '.gitmodules', blob)), `parent ${harmless}`),
  );
  for (const push of [pushToGit, pushToUs]) {
    expect((await push('refs/heads/first', harmless, first.build())).accepted).toBe(true);
    expect(await push('refs/heads/second', named, second.build())).toMatchObject({ accepted: false });
  }
});

it('rejects a submodule named .gitmodules, as git fsck does', async () => {
  const builder = new PackBuilder();
  const tip = builder.add('tree', treeEntry('160000', '.gitmodules', '3'.repeat(40)));
  expect((await pushToUs('refs/tags/submodule', tip, builder.build())).output).toContain('used as .gitmodules');
});

it('accepts a thin pack that changes a valid .gitmodules', async () => {
  const text = (path: string): string => `[submodule "thin"]\n\tpath = ${path}\n\turl = https://example.com/x\n`;
  const first = new PackBuilder();
  const blob = first.add('blob', text('a'));
  const root = first.add('commit', commitOf(first.add('tree', treeEntry('100644', '.gitmodules', blob))));
  expect((await pushToUs('refs/heads/thin', root, first.build())).accepted).toBe(true);
  const second = new PackBuilder();
  const changed = text('b');
  const at = changed.indexOf('b\n\turl');
  second.referenceDelta(
    blob,
    deltaOf(
      changed.length,
      changed.length,
      Buffer.concat([copyInstruction(0, at), Buffer.from('\x01b'), copyInstruction(at + 1, changed.length - at - 1)]),
    ),
  );
  const folder = second.add('tree', treeEntry('100644', '.gitmodules', objectId('blob', changed)));
  const tip = second.add('commit', commitOf(folder, `parent ${root}`));
  expect((await pushToUs('refs/heads/thin-2', tip, second.build())).accepted).toBe(true);
});
