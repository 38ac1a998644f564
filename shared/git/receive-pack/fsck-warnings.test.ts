import { afterAll, beforeAll, expect, it } from 'vitest';
import { fsckCases } from '#shared/git/testing/fsck-cases.ts';
import { git, tryGit } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import { PackBuilder, treeEntry } from '#shared/git/testing/pack-builder.ts';

let fixture: GitFixture;
let bare: string;
let work: string;
beforeAll(async () => {
  fixture = await createGitFixture('memory');
  bare = `${fixture.directory}/theirs.git`;
  await git(fixture.directory, 'init', '-q', '--bare', bare);
  for (const setting of ['transfer.fsckObjects', 'receive.unpackLimit'])
    await git(bare, 'config', setting, setting === 'receive.unpackLimit' ? '1' : 'true');
  work = await fixture.workingCopy(fixture.newRepository());
});
afterAll(() => fixture.close());

/** The warnings that the person who pushes sees: object and id, since git's words differ by version. */
async function warningsOf(url: string, tip: string): Promise<string[]> {
  const { code, stderr } = await tryGit(work, ['push', url, `${tip}:refs/tags/odd`]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return [...stderr.matchAll(/remote: warning: object ([0-9a-f]{40}: \w+): \S/g)].map(([, warning = '']) => warning).sort();
}

async function put(pack: PackBuilder): Promise<void> {
  expect(await tryGit(work, ['index-pack', '--stdin'], pack.build())).toMatchObject({ code: 0 });
}

const ids = [
  'badTagName',
  'missingTaggerEntry',
  'badFilemode',
  'gitattributesSymlink',
  'gitignoreSymlink',
  'mailmapSymlink',
  'gitmodulesParse',
];
const cases = fsckCases.filter(([id]) => id === '' || ids.includes(id));

it.each(cases.map(([id, what, make]) => ({ id, what, make })))(
  'warns like git, and accepts the push: $id $what',
  async ({ id, make }) => {
    const pack = new PackBuilder();
    const tip = pack.add(...make(pack));
    await put(pack);
    await git(bare, 'update-ref', '-d', 'refs/tags/odd');
    const theirs = await warningsOf(bare, tip);
    const ours = await warningsOf(fixture.server.url(fixture.newRepository()), tip);
    expect(ours).toEqual(theirs);
    expect(ours.map((warning) => warning.split(': ')[1])).toEqual(id === '' ? [] : [id]);
  },
);

it('shows the first warnings of many, and how many more there are', async () => {
  const pack = new PackBuilder();
  const blob = pack.add('blob', 'x');
  const trees = Array.from({ length: 23 }, (_, i) =>
    treeEntry('40000', `d${String(i).padStart(2, '0')}`, pack.add('tree', treeEntry('100664', `f${i}`, blob))),
  );
  const tip = pack.add('tree', Buffer.concat(trees));
  await put(pack);
  const { stderr } = await tryGit(work, ['push', fixture.server.url(fixture.newRepository()), `${tip}:refs/tags/odd`]);
  expect(stderr.match(/remote: warning: object/g)).toHaveLength(20);
  expect(stderr).toContain('remote: warning: and 3 more');
});
