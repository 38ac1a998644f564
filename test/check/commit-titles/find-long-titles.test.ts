import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { runChecked } from '#test/support/run-program.ts';
import { findLongTitles } from './find-long-titles.ts';

const longest = 'x'.repeat(72);
const tooLong = `${longest}y`;

let directory: string;
let repository: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-titles-'));
  repository = join(directory, 'repository');
  await git('init', '-q', '-b', 'main', repository);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

async function git(...args: readonly string[]): Promise<void> {
  await runChecked('git', args, { cwd: directory, env: { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' } });
}

async function commit(title: string, date = '2026-12-01T00:00:00Z'): Promise<void> {
  const identity = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com'];
  vi.stubEnv('GIT_COMMITTER_DATE', date);
  await git('-C', repository, ...identity, 'commit', '-q', '--allow-empty', '-m', title, '-m', 'z'.repeat(100));
}

describe('titles of commits', () => {
  it('may have 72 characters and no more', async () => {
    for (const title of [longest, 'é'.repeat(72), tooLong]) await commit(title);
    expect(await findLongTitles(repository)).toEqual([
      expect.stringMatching(new RegExp(`^[0-9a-f]{7,} has a title of 73 characters, 72 are allowed: ${tooLong}$`)),
    ]);
  });

  it('are those that origin/main does not have', async () => {
    await commit(tooLong);
    const clone = join(directory, 'clone');
    await git('clone', '-q', repository, clone);
    expect(await findLongTitles(clone)).toEqual([]);
    repository = clone;
    await commit(`${tooLong}z`);
    expect(await findLongTitles(clone)).toEqual([expect.stringContaining('74 characters')]);
  });

  it('are the last 20 where there is no origin/main', async () => {
    await commit(tooLong);
    for (let count = 0; count < 19; count += 1) await commit(`Change ${count}`);
    expect(await findLongTitles(repository)).toHaveLength(1);
    await commit('Change another');
    expect(await findLongTitles(repository)).toEqual([]);
  });

  it('are left alone in commits that are older than the rule', async () => {
    await commit(tooLong, '2026-11-22T03:20:26Z');
    expect(await findLongTitles(repository)).toEqual([]);
    await commit(tooLong, '2026-11-22T03:20:27Z');
    expect(await findLongTitles(repository)).toHaveLength(1);
  });
});

describe('where the history is not all there, nothing is wrong', () => {
  it.each([
    ['a shallow clone', ['--depth', '1']],
    ['a clone of one tag', ['--branch', 'v1', '--single-branch']],
    ['a shallow clone of one tag', ['--depth', '1', '--branch', 'v1']],
  ])('in %s', async (_name, options) => {
    await commit('Begin');
    await commit('Go on');
    await git('-C', repository, 'tag', 'v1');
    const clone = join(directory, 'clone');
    await git('clone', '-q', ...options, `file://${repository}`, clone);
    expect(await findLongTitles(clone)).toEqual([]);
  });

  it('in a repository without a commit', async () => {
    expect(await findLongTitles(repository)).toEqual([]);
  });

  it('in a directory without a repository, also inside of another repository', async () => {
    await commit(tooLong);
    await mkdir(join(repository, 'vendor/paas'), { recursive: true });
    expect(await findLongTitles(join(repository, 'vendor/paas'))).toEqual([]);
    expect(await findLongTitles(directory)).toEqual([]);
  });

  it('without git', async () => {
    await commit(tooLong);
    vi.stubEnv('PATH', directory);
    expect(await findLongTitles(repository)).toEqual([]);
  });
});
