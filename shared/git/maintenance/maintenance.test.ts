import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { millisecondsPerHour } from '#shared/durations.ts';
import { createGitStorage } from '#shared/git/storage/create-git-storage.ts';
import { damagePacks } from '#shared/git/testing/damage-packs.ts';
import { git, tryGit } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import { createLocalHistory, type LocalHistory } from '#shared/git/testing/local-history.ts';
import { expectIntact, listObjects, listReachable, listStoredPacks } from '#shared/git/testing/maintained-repository.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { TestClock } from '#test/support/test-clock.ts';

// Each test runs many git processes, which take long on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const main = 'refs/heads/main';
const running = new AbortController().signal;
const day = 24 * millisecondsPerHour;

let fixture: GitFixture;
let clock: TestClock;
let id: RepositoryId;
let history: LocalHistory;
beforeEach(async () => {
  clock = TestClock.standing();
  fixture = await createGitFixture('postgres', { clock });
  id = fixture.newRepository();
  history = await createLocalHistory(fixture, id, join(fixture.directory, 'history'));
});
afterEach(async () => {
  await fixture.close();
  expect(fixture.logged).toEqual([]);
});

const repack = () => fixture.storage.maintenance.repack(id, running);
const collect = (...roots: ObjectId[]) => fixture.storage.maintenance.collectGarbage(id, async () => roots, running);

/** Pushes commits on top of each other, one by one. Returns their ids. */
async function pushCommits(count: number): Promise<ObjectId[]> {
  const files = Array.from({ length: count }, (_, i) => ({ [`file-${i % 3}`]: `content ${i}\n`, 'large.txt': largeText(i) }));
  const commits = await history.commits('main', files);
  for (const [i, commit] of commits.entries()) await history.push(main, commit, commits.slice(0, i).slice(-1));
  return commits;
}

/** Changes another line in each version, so that clients send it as a delta of the version before. */
function largeText(version: number): string {
  return Array.from({ length: 300 }, (_, i) => `line ${i} of a text, ${i <= version ? 'changed' : 'unchanged'}`).join('\n');
}

it('joins the packs of many pushes into one that stock git reads, with each object once and no long delta chains', async () => {
  const commits = await pushCommits(60);
  const objects = await listObjects(history.directory);
  expect(await fixture.storage.maintenance.needsRepack(fixture.db, id)).toBe(true);
  expect(await repack()).toMatchObject({ packs: 60, objects: objects.length });
  expect(await listStoredPacks(fixture, id)).toEqual([{ objects: objects.length, unreachable: false }]);
  expect(await fixture.storage.maintenance.needsRepack(fixture.db, id)).toBe(false);
  expect(await repack()).toEqual({ packs: 0, objects: 0, bytes: 0 });

  const bare = await expectIntact(fixture, id);
  expect(await listObjects(bare)).toEqual(objects);
  const [pack = ''] = (await readdir(join(bare, 'objects', 'pack'))).filter((name) => name.endsWith('.pack'));
  const report = await git(bare, 'verify-pack', '-v', join(bare, 'objects', 'pack', pack));
  const longest = Math.max(...[...report.matchAll(/^chain length = (\d+)/gm)].map(([, length]) => Number(length)));
  // Objects that clients sent as deltas stay deltas.
  expect(longest).toBeGreaterThan(30);
  expect(longest).toBeLessThanOrEqual(50);
  const clone = join(fixture.directory, 'clone');
  await git(fixture.directory, 'clone', '-q', fixture.server.url(id), clone);
  expect(await git(clone, 'rev-parse', 'HEAD')).toBe(commits.at(-1));
  await git(clone, 'fsck', '--full', '--strict');
});

it('leaves large packs alone while small ones are joined', async () => {
  await pushCommits(1);
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`many/${i}`, `${i}`]));
  const large = await history.commit('large', [], many);
  await history.push('refs/heads/large', large, []);
  await pushCommits(4);
  await repack();
  const [joined, alone] = await listStoredPacks(fixture, id);
  expect(alone?.objects).toBe(203);
  expect(joined?.objects).toBeLessThan(30);
  await expectIntact(fixture, id);
});

it('keeps unreachable objects for two weeks, and then removes them', async () => {
  const [first] = await pushCommits(3);
  const lost = await history.commit('lost', [first ?? ''], { secret: 'of the lost commit' });
  await history.push('refs/heads/lost', lost, [first ?? '']);
  await history.push('refs/heads/lost', undefined, []);
  const foundAt = clock.now().getTime();
  expect(await collect()).toEqual({ unreachable: 3, removed: 0, nextAt: new Date(foundAt + 14 * day + millisecondsPerHour) });
  expect(await collect()).toEqual({ unreachable: 0, removed: 0, nextAt: new Date(foundAt + 14 * day + millisecondsPerHour) });
  expect(await fixture.storage.reader.resolveCommit(id, lost)).toBe(lost);
  await expectIntact(fixture, id);

  clock.advance(14 * day);
  // Readers no longer find it, and it is removed an millisecondsPerHour later: a reader that found it just before can finish.
  expect(await fixture.storage.reader.resolveCommit(id, lost)).toBeUndefined();
  expect(await collect()).toMatchObject({ removed: 0 });
  clock.advance(millisecondsPerHour);
  expect(await collect()).toEqual({ unreachable: 0, removed: 3, nextAt: undefined });
  const bare = await expectIntact(fixture, id);
  expect((await tryGit(bare, ['cat-file', '-e', lost])).code).not.toBe(0);
  expect(await listObjects(bare)).toHaveLength((await listReachable(bare)).length);
});

it('keeps the given roots, and makes objects part of the repository again when a ref or a root needs them', async () => {
  const [first = '' as ObjectId] = await pushCommits(2);
  const released = await history.commit('released', [first], { app: 'released' });
  const failed = await history.commit('failed', [first], { app: 'failed' });
  await history.pushPackOnly(released, [first]);
  await history.pushPackOnly(failed, [first]);
  expect(await collect(released)).toMatchObject({ unreachable: 3 });
  expect((await listStoredPacks(fixture, id)).filter(({ unreachable }) => unreachable)).toEqual([
    { objects: 3, unreachable: true },
  ]);

  // A new ref that points at it brings it back, although no pack is sent.
  const change = { name: 'refs/heads/again', oldOid: undefined, newOid: failed };
  expect(await fixture.storage.refs.compareAndSwap(fixture.db, id, [change])).toBe(true);
  expect((await listStoredPacks(fixture, id)).every(({ unreachable }) => !unreachable)).toBe(true);
  clock.advance(15 * day);
  expect(await collect(released)).toMatchObject({ unreachable: 0, removed: 0 });

  // So does a root that was unreachable for a while.
  await history.push('refs/heads/again', undefined, []);
  await collect(released);
  clock.advance(20 * day);
  expect(await collect(released, failed)).toMatchObject({ unreachable: 0, removed: 3 });
  expect(await fixture.storage.reader.resolveCommit(id, failed)).toBe(failed);
  const bare = await expectIntact(fixture, id);
  for (const oid of [released, failed]) await git(bare, 'rev-list', '--objects', oid);
});

it('keeps the objects that unreachable objects refer to as long as those', async () => {
  const [first = '' as ObjectId] = await pushCommits(1);
  const below = await history.commit('below', [first], { below: 'x' });
  await history.pushPackOnly(below, [first]);
  await collect();
  clock.advance(10 * day);
  // The commit below is unreachable, so the server does not rely on it: the client sends all of it again.
  const above = await history.commit('above', [below], { above: 'y' });
  await history.pushPackOnly(above, [first]);
  await collect();
  clock.advance(5 * day);
  await collect();
  expect(await fixture.storage.reader.resolveCommit(id, above)).toBe(above);
  await git(await expectIntact(fixture, id), 'rev-list', '--objects', above);
});

it('rejects a push that relies on unreachable objects, and accepts it when it brings them', async () => {
  const [first = '' as ObjectId] = await pushCommits(1);
  const below = await history.commit('below', [first], { below: 'x' });
  await history.pushPackOnly(below, [first]);
  await collect();
  const above = await history.commit('above', [below], { above: 'y' });
  await expect(history.push(main, above, [below])).rejects.toThrow(/is needed, but was neither sent nor is in the repository/);
  await history.push(main, above, [first]);
  await expectIntact(fixture, id);
});

it('does not join damaged packs, and leaves them as they are', async () => {
  await pushCommits(3);
  const directory = join(fixture.directory, 'data');
  await damagePacks(join(directory, id, 'packs'));
  // Another process: this one may have the undamaged bytes in memory.
  const other = createGitStorage({ db: fixture.db, directory, log: createLog('silent', () => undefined) });
  await expect(other.maintenance.repack(id, running)).rejects.toThrow(/is broken/);
  await other.close();
  expect(await listStoredPacks(fixture, id)).toHaveLength(3);
  expect(await fixture.listQuarantines(id)).toEqual([]);
});
