import { join } from 'node:path';
import { expect, it } from 'vitest';
import { millisecondsPerDay } from '#shared/durations.ts';
import { git } from '#shared/git/testing/git-client.ts';
import { createGitFixture } from '#shared/git/testing/git-fixture.ts';
import { createLocalHistory } from '#shared/git/testing/local-history.ts';
import { expectIntact, listObjects, listReachable, listStoredPacks } from '#shared/git/testing/maintained-repository.ts';
import type { ObjectId } from '#shared/ids.ts';
import { createRandom } from '#test/support/random.ts';
import { TestClock } from '#test/support/test-clock.ts';

const running = new AbortController().signal;
const steps = 40;

it.each([Number(process.hrtime.bigint() % 1_000_000n)])(
  'keeps what the refs reach, whatever is pushed, forced, merged, tagged and deleted during maintenance: seed %i',
  async (seed) => {
    const random = createRandom(seed);
    const clock = TestClock.standing();
    const fixture = await createGitFixture('postgres', { clock });
    try {
      const id = fixture.newRepository();
      const history = await createLocalHistory(fixture, id, join(fixture.directory, 'history'));
      /** The storage's refs, by name. */
      const refs = new Map<string, ObjectId>();
      const everything: ObjectId[] = [];
      const pick = (): ObjectId[] => [...refs.values()].slice(random(refs.size || 1)).slice(0, 1);
      const push = async (name: string, newOid: ObjectId): Promise<void> => {
        await history.push(name, newOid, [...refs.values()]);
        refs.set(name, newOid);
      };
      const maintain = async (): Promise<void> => {
        const what = random(3);
        if (what < 2) await fixture.storage.maintenance.repack(id, running);
        if (what > 0) await fixture.storage.maintenance.collectGarbage(id, async () => [], running);
        clock.advance(random(6) * millisecondsPerDay);
      };
      for (let step = 0; step < steps; step++) {
        const branch = `branch-${random(4)}`;
        const name = `refs/heads/${branch}`;
        const files = { [`file-${random(5)}`]: `${step} `.repeat(random(200)), [`dir/${random(3)}`]: `${random(4)}` };
        // In half of the cases it runs during the next step.
        const maintenance = random(3) === 0 ? maintain() : Promise.resolve();
        if (random(2) === 0) await maintenance;
        const kind = random(10);
        if (kind === 0 && refs.has(name)) {
          await history.push(name, undefined, []);
          refs.delete(name);
        } else if (kind === 1 && everything.length > 0) {
          // To any earlier commit, whether it still exists or not.
          await push(name, everything[random(everything.length)] as ObjectId);
        } else if (kind === 2) {
          const failed = await history.commit('failed', pick(), files);
          await history.pushPackOnly(failed, [...refs.values()]);
          everything.push(failed);
        } else if (kind === 3 && refs.size > 0) {
          await git(history.directory, 'tag', '-f', '-a', '-m', `step ${step}`, `tag-${step % 3}`, ...pick());
          await push(`refs/tags/tag-${step % 3}`, (await git(history.directory, 'rev-parse', `tag-${step % 3}`)) as ObjectId);
        } else {
          const own = refs.get(name);
          const tips = kind === 4 ? [] : [...(own === undefined || kind === 5 ? pick() : [own]), ...(kind < 8 ? [] : pick())];
          const parents: string[] = [];
          for (const tip of tips) parents.push(await git(history.directory, 'rev-parse', `${tip}^{commit}`));
          const commit = await history.commit(branch, [...new Set(parents)], files);
          await push(name, commit);
          everything.push(commit);
        }
        await maintenance;
        // Not during maintenance: with 0 it takes new packs for abandoned ones.
        if (random(5) === 0) await fixture.storage.sweep(0);
      }
      for (let round = 0; round < 3; round++) {
        await fixture.storage.maintenance.collectGarbage(id, async () => [], running);
        clock.advance(20 * millisecondsPerDay);
      }
      const bare = await expectIntact(fixture, id);
      expect(new Map((await fixture.storage.refs.listRefs(id)).map(({ name, oid }) => [name, oid]))).toEqual(
        new Map([...refs].toSorted(([a], [b]) => (a < b ? -1 : 1))),
      );
      // All reachable objects exist, and after the grace period no others.
      const reachable = await listReachable(bare);
      expect((await listObjects(bare)).map((line) => line.slice(0, 40)).toSorted()).toEqual(reachable);
      expect((await listStoredPacks(fixture, id)).every(({ unreachable }) => !unreachable)).toBe(true);
      const clone = join(fixture.directory, 'clone');
      await git(fixture.directory, 'clone', '-q', '--mirror', fixture.server.url(id), clone);
      expect(await listReachable(clone)).toEqual(reachable);
      await git(clone, 'fsck', '--full', '--strict');
      expect(fixture.logged).toEqual([]);
    } finally {
      await fixture.close();
    }
  },
  180_000,
);
