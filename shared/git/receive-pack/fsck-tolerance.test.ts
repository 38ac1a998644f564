import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tolerableFaults, toleratedByDefault } from '#shared/git/objects/tolerable-faults.ts';
import { encodePacket, flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { fsckCases } from '#shared/git/testing/fsck-cases.ts';
import { git, tryGit } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import { commitOf, objectId, PackBuilder, treeEntry } from '#shared/git/testing/pack-builder.ts';
import { pushRaw } from '#shared/git/testing/raw-push.ts';
import type { ObjectId } from '#shared/ids.ts';

const none = '0'.repeat(40);

it('tolerates by default what large hosts tolerate, and never what has hurt a client', () => {
  expect(toleratedByDefault).toEqual(['badTimezone', 'missingSpaceBeforeDate', 'zeroPaddedFilemode']);
  expect(tolerableFaults).toEqual([
    ...['badDate', 'badDateOverflow', 'badEmail', 'badName', 'badTimezone', 'missingEmail', 'missingNameBeforeEmail'],
    ...['missingSpaceBeforeDate', 'missingSpaceBeforeEmail', 'zeroPaddedDate', 'zeroPaddedFilemode'],
  ]);
});

describe.each([
  { name: 'every tolerable fault', tolerated: tolerableFaults },
  { name: 'the default faults', tolerated: toleratedByDefault },
])('with $name tolerated', ({ tolerated }) => {
  let fixture: GitFixture;
  let bare: string;
  beforeAll(async () => {
    fixture = await createGitFixture('memory', { tolerated });
    bare = `${fixture.directory}/theirs.git`;
    await git(fixture.directory, 'init', '-q', '--bare', bare);
  });
  afterAll(() => fixture.close());

  const settings = ['transfer.fsckObjects=true', ...tolerated.map((id) => `receive.fsck.${id}=ignore`)];

  async function pushToGit(name: string, tip: string, pack: Buffer): Promise<{ accepted: boolean; output: string }> {
    const options = [...settings, 'receive.unpackLimit=1'].flatMap((setting) => ['-c', setting]);
    const sent = Buffer.concat([encodePacket(`${none} ${tip} ${name}\0report-status`), flushPacket, pack]);
    const { stdout, stderr } = await tryGit(bare, [...options, 'receive-pack', '--stateless-rpc', bare], sent);
    return { accepted: stdout.includes(`ok ${name}`), output: stdout + stderr };
  }

  async function pushToUs(name: string, tip: string, pack: Buffer): Promise<{ accepted: boolean; output: string }> {
    const id = fixture.newRepository();
    const lines = await pushRaw(fixture.storage, id, { change: { name, to: tip }, pack, applyPush: fixture.applyPush(id) });
    return { accepted: lines.includes(`ok ${name}`), output: lines.join('\n') };
  }

  const cases = fsckCases.filter(([id]) => tolerableFaults.some((each) => each === id) || /^has|Symlink$|^dup/.test(id));
  it.each(cases.map(([id, what, make], number) => ({ id, what, make, number })))(
    'gives the same verdict as git with these settings: $id $what',
    async ({ id, make, number }) => {
      const builder = new PackBuilder();
      const tip = builder.add(...make(builder));
      const pack = builder.build();
      const theirs = await pushToGit(`refs/tags/case-${number}`, tip, pack);
      const ours = await pushToUs(`refs/tags/case-${number}`, tip, pack);
      expect(ours, theirs.output).toMatchObject({ accepted: theirs.accepted });
      if (tolerated.some((each) => each === id)) expect(ours.accepted).toBe(true);
      // The message names the fault, and the setting that tolerates it.
      else if (tolerableFaults.some((each) => each === id))
        expect(ours.output).toMatch(new RegExp(`\\(${id}\\).*PAAS_GIT_TOLERATE`));
      else if (!ours.accepted) expect(ours.output).toContain(`(${id})`);
    },
  );

  it('still checks everything else of objects with such faults', async () => {
    const builder = new PackBuilder();
    const blob = builder.add('blob', 'x');
    const padded = (name: string): Buffer => treeEntry('0100644', name, blob);
    const trees = [
      padded('.git'),
      Buffer.concat([padded('a'), padded('a')]),
      treeEntry('0120000', '.gitmodules', blob),
      treeEntry('0', 'a', blob),
    ];
    const sound = objectId('tree', treeEntry('100644', 'a', blob));
    const odd = commitOf(sound).replace(/^(author .*)\+0000$/m, '$1+051800');
    expect(odd).not.toBe(commitOf(sound));
    const commits = [
      odd.replace(/^committer .*\n/m, ''),
      odd.replace(/^(author .*\n)/m, '$1$1'),
      odd.replace(sound, '1'.repeat(40)),
    ];
    const objects = [
      ...trees.map((content) => ['tree', content] as const),
      ...commits.map((content) => ['commit', content] as const),
    ];
    for (const [number, object] of objects.entries()) {
      const pack = new PackBuilder();
      pack.add('blob', 'x');
      pack.add('tree', treeEntry('100644', 'a', blob));
      const tip = pack.add(object[0], object[1]);
      expect(await pushToUs(`refs/tags/rest-${number}`, tip, pack.build())).toMatchObject({ accepted: false });
    }
  });

  it('serves accepted objects to clients', async () => {
    const id = fixture.newRepository();
    const pack = new PackBuilder();
    const folder = pack.add('tree', treeEntry('0100644', 'notes.txt', pack.add('blob', 'hello\n')));
    const root = pack.add('tree', treeEntry('040000', 'docs', folder));
    const tip = pack.add('commit', commitOf(root).replace(/^(author .*)\+0000$/m, '$1+051800'));
    const change = { name: 'refs/heads/main', to: tip };
    const lines = await pushRaw(fixture.storage, id, { change, pack: pack.build(), applyPush: fixture.applyPush(id) });
    expect(lines).toContain('ok refs/heads/main');
    await git(fixture.directory, 'clone', '-q', fixture.server.url(id), `${fixture.directory}/clone`);
    expect(await git(`${fixture.directory}/clone`, 'show', 'HEAD:docs/notes.txt')).toBe('hello');
    const files: string[] = [];
    for await (const { path, kind } of fixture.storage.reader.readTree(id, tip as ObjectId)) files.push(`${kind} ${path}`);
    expect(files).toEqual(['file docs/notes.txt']);
  });
});
