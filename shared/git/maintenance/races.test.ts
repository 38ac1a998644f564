import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { millisecondsPerDay } from '#shared/durations.ts';
import { createDirectoryPackFiles } from '#shared/git/packs/files/directory-pack-files.ts';
import { createGitStorageFrom, createPostgresGitDrivers } from '#shared/git/storage/create-git-storage.ts';
import { git } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import { createLocalHistory, type LocalHistory } from '#shared/git/testing/local-history.ts';
import { expectIntact, listReachable, listStoredPacks } from '#shared/git/testing/maintained-repository.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { TestClock } from '#test/support/test-clock.ts';

// Each test runs many git processes, which take long on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const main = 'refs/heads/main';
const running = new AbortController().signal;

type Point = 'packs listed' | 'refs listed' | 'pack prepared' | 'pack stored';

let fixture: GitFixture;
let clock: TestClock;
let id: RepositoryId;
let history: LocalHistory;
/** What happens, once, when the maintenance reaches a point. */
let meanwhile: Partial<Record<Point, () => Promise<void>>>;

async function reach(point: Point): Promise<void> {
  const action = meanwhile[point];
  delete meanwhile[point];
  await action?.();
}

async function open(): Promise<void> {
  clock = TestClock.standing();
  meanwhile = {};
  fixture = await createGitFixture('postgres', {
    clock,
    wrap: ({ refs, catalog, files }) => ({
      catalog: {
        ...catalog,
        async listPacks(repositoryId, db) {
          const listed = await catalog.listPacks(repositoryId, db);
          await reach('packs listed');
          return listed;
        },
      },
      refs: {
        ...refs,
        async listRefs(repositoryId, db) {
          const listed = await refs.listRefs(repositoryId, db);
          await reach('refs listed');
          return listed;
        },
      },
      files: {
        ...files,
        async preparePack(...pack) {
          await files.preparePack(...pack);
          await reach('pack prepared');
        },
        async storePack(...pack) {
          await files.storePack(...pack);
          await reach('pack stored');
        },
      },
    }),
  });
  id = fixture.newRepository();
  history = await createLocalHistory(fixture, id, join(fixture.directory, 'history'));
}

afterEach(async () => {
  await fixture.close();
});

const repack = () => fixture.storage.maintenance.repack(id, running);
const collect = () => fixture.storage.maintenance.collectGarbage(id, async () => [], running);

async function pushCommits(count: number): Promise<ObjectId[]> {
  const files = Array.from({ length: count }, (_, i) => ({ [`file-${i % 3}`]: `content ${i}` }));
  const commits = await history.commits('main', files);
  for (const [i, commit] of commits.entries()) await history.push(main, commit, commits.slice(0, i).slice(-1));
  return commits;
}

it.each(['packs listed', 'pack prepared'] as const)('keeps a push that lands while packs are joined: %s', async (point) => {
  await open();
  const [, , last = '' as ObjectId] = await pushCommits(3);
  const next = await history.commit('main', [last], { next: point });
  meanwhile[point] = () => history.push(main, next, [last]);
  expect(await repack()).toMatchObject({ packs: 3 });
  expect(await fixture.storage.refs.readRef(id, main)).toBe(next);
  const bare = await expectIntact(fixture, id);
  expect(await listReachable(bare)).toEqual(await listReachable(history.directory));
});

it('keeps the result of the first of two processes that join the same packs', async () => {
  await open();
  await pushCommits(4);
  let other: unknown;
  meanwhile['pack prepared'] = async () => {
    other = await repack();
  };
  expect(await repack()).toEqual({ packs: 0, objects: 0, bytes: 0 });
  expect(other).toMatchObject({ packs: 4 });
  expect(await listStoredPacks(fixture, id)).toHaveLength(1);
  await expectIntact(fixture, id);
});

it.each(['packs listed', 'refs listed', 'pack prepared'] as const)(
  'removes nothing that a push relies on when it lands after: %s',
  async (point) => {
    await open();
    const [first = '' as ObjectId] = await pushCommits(2);
    const lost = await history.commit('lost', [first], { lost: 'x' });
    await history.push('refs/heads/lost', lost, [first]);
    const above = await history.commit('above', [lost], { above: 'y' });
    // The client saw the branch, which is deleted while it pushes on top of it.
    const staged = await stage(above, [lost]);
    await history.push('refs/heads/lost', undefined, []);
    meanwhile[point] = () => move('refs/heads/above', above, staged);
    await collect();
    expect(await fixture.storage.refs.readRef(id, 'refs/heads/above')).toBe(above);
    clock.advance(30 * millisecondsPerDay);
    await collect();
    clock.advance(30 * millisecondsPerDay);
    await collect();
    const bare = await expectIntact(fixture, id);
    expect(await git(bare, 'rev-list', '--count', 'refs/heads/above')).toBe('3');
    expect((await listStoredPacks(fixture, id)).every(({ unreachable }) => !unreachable)).toBe(true);
  },
);

it('makes separated unreachable objects reachable again for a push that was checked before', async () => {
  await open();
  const [first = '' as ObjectId] = await pushCommits(2);
  const lost = await history.commit('lost', [first], { lost: 'x' });
  await history.push('refs/heads/lost', lost, [first]);
  const above = await history.commit('above', [lost], { above: 'y' });
  const staged = await stage(above, [lost]);
  await history.push('refs/heads/lost', undefined, []);
  expect(await collect()).toMatchObject({ unreachable: 3 });
  await move('refs/heads/above', above, staged);
  expect((await listStoredPacks(fixture, id)).every(({ unreachable }) => !unreachable)).toBe(true);
  const clone = join(fixture.directory, 'clone');
  await git(fixture.directory, 'clone', '-q', '--mirror', fixture.server.url(id), clone);
  await git(clone, 'fsck', '--full', '--strict');
  expect(await git(clone, 'rev-list', '--count', 'above')).toBe('3');
});

it('serves a reader that has listed packs whose files were deleted since', async () => {
  await open();
  const commits = await pushCommits(5);
  // Another process, which has not opened these packs before.
  const drivers = createPostgresGitDrivers(fixture.db);
  const directory = join(fixture.directory, 'data');
  let swept = false;
  const other = createGitStorageFrom(
    { directory, log: createLog('silent', () => undefined) },
    {
      ...drivers,
      files: createDirectoryPackFiles(directory),
      catalog: {
        ...drivers.catalog,
        async listPacks(repositoryId, db) {
          const listed = await drivers.catalog.listPacks(repositoryId, db);
          if (!swept) {
            swept = true;
            await repack();
            await fixture.storage.sweep(0);
          }
          return listed;
        },
      },
    },
  );
  expect(await other.reader.resolveCommit(id, commits[0] ?? '')).toBe(commits[0]);
  await other.close();
  expect(await listStoredPacks(fixture, id)).toHaveLength(1);
});

it('leaves the files of joined packs in place for a while, for those who still read them', async () => {
  await open();
  await pushCommits(3);
  const directory = join(fixture.directory, 'data', id, 'packs');
  await repack();
  const countPacks = async (): Promise<number> => (await readdir(directory)).filter((name) => name.endsWith('.pack')).length;
  await fixture.storage.sweep(60);
  expect(await countPacks()).toBe(4);
  await fixture.storage.sweep(0);
  expect(await countPacks()).toBe(1);
});

it('accepts a pack again that was joined into another one', async () => {
  await open();
  const [first = '' as ObjectId] = await pushCommits(2);
  const before = await stage(first, []);
  await repack();
  await before?.admit(fixture.db);
  await before?.discard();
  await fixture.storage.sweep(0);
  expect(await listStoredPacks(fixture, id)).toHaveLength(2);
  await expectIntact(fixture, id);
});

function stage(newOid: ObjectId, has: readonly string[]) {
  return fixture.storage.stagePack(id, history.pack(newOid, has), running);
}

async function move(name: string, newOid: ObjectId, pack: Awaited<ReturnType<typeof stage>>): Promise<void> {
  const oldOid = await fixture.storage.refs.readRef(id, name);
  const request = { commands: [{ name, oldOid, newOid }], atomic: false, pushOptions: [], pack };
  expect(await fixture.moveRefs(id, request)).toEqual([{ name, status: 'ok' }]);
  await pack?.discard();
}
