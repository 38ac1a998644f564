import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import { createLocalHistory, type LocalHistory } from '#shared/git/testing/local-history.ts';
import { expectIntact, listReachable, listStoredPacks } from '#shared/git/testing/maintained-repository.ts';
import type { RepositoryId } from '#shared/ids.ts';

const maintenanceMain = fileURLToPath(new URL('../support/crash/maintenance-main.ts', import.meta.url));
/** Before the transaction, in the middle of it, and after it. */
const points = ['pack stored', 'packs retired', 'committed'];

describe('kill -9 of a process that repacks or collects garbage', () => {
  let fixture: GitFixture;
  let id: RepositoryId;
  let history: LocalHistory;
  beforeEach(async () => {
    fixture = await createGitFixture();
    id = fixture.newRepository();
    history = await createLocalHistory(fixture, id, join(fixture.directory, 'history'));
    const commits = await history.commits(
      'main',
      Array.from({ length: 6 }, (_, i) => ({ 'a.txt': `version ${i}`, [`file-${i}`]: `${i}` })),
    );
    for (const [i, commit] of commits.entries()) await history.push('refs/heads/main', commit, commits.slice(0, i).slice(-1));
    await history.pushPackOnly(await history.commit('vain', commits.slice(-1), { vain: 'x' }), commits.slice(-1));
  });
  afterEach(() => fixture.close());

  it.each(['repack', 'collect'].flatMap((task) => points.map((point) => [task, point] as const)))(
    '%s, %s: no object is lost, no file is left over, and the next process does the work',
    async (task, point) => {
      const child = spawn(process.execPath, [maintenanceMain, fixture.url, join(fixture.directory, 'data'), id, task, point], {
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
      expect(signal).toBe('SIGKILL');
      await expectIntact(fixture, id);
      const running = new AbortController().signal;
      await fixture.storage.maintenance.repack(id, running);
      await fixture.storage.maintenance.collectGarbage(id, async () => [], running);
      await fixture.storage.maintenance.repack(id, running);
      const bare = await expectIntact(fixture, id);
      expect(await listReachable(bare)).toContain(await fixture.storage.refs.readRef(id, 'refs/heads/main'));
      expect(await listStoredPacks(fixture, id)).toEqual([
        { objects: 3, unreachable: true },
        { objects: (await listReachable(bare)).length, unreachable: false },
      ]);
    },
  );
});
