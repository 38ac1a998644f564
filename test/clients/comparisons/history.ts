import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { secondsPerDay } from '#shared/durations.ts';
import { runChecked } from '#test/support/run-program.ts';

/**
 * Creates an app of one page whose history has everything that fetches depend on: two branches and their merge, days between
 * commits, both kinds of tags and tags of tags, deep directories, small and large files, and files with earlier content.
 */
export async function makeHistory(directory: string): Promise<void> {
  let day = 0;
  const git = (...args: readonly string[]): Promise<unknown> => {
    const date = `@${1_700_000_000 + day * secondsPerDay} +0000`;
    const people = {
      GIT_AUTHOR_NAME: 'A',
      GIT_AUTHOR_EMAIL: 'a@example.com',
      GIT_COMMITTER_NAME: 'C',
      GIT_COMMITTER_EMAIL: 'c@example.com',
    };
    const env = { ...people, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date, GIT_CONFIG_GLOBAL: '/dev/null' };
    return runChecked('git', args, { cwd: directory, env });
  };
  const commit = async (files: Record<string, string>): Promise<void> => {
    day++;
    for (const [path, content] of Object.entries(files)) {
      await mkdir(join(directory, path, '..'), { recursive: true });
      await writeFile(join(directory, path), content);
    }
    await git('add', '-A');
    await git('commit', '-q', '--allow-empty', '-m', `Day ${day}`);
  };
  await mkdir(directory, { recursive: true });
  await git('init', '-q', '-b', 'main');
  await commit({
    'index.html': '<p>day 1</p>\n',
    'deep/one/two/three.txt': 'three\n',
    'deep/one/four.txt': 'four\n',
    'large.txt': 'a line of a large file\n'.repeat(5000),
    'only-deep': '/deep/\n',
  });
  for (let i = 0; i < 12; i++)
    await commit({ 'index.html': `<p>day ${i}</p>\n`, [`deep/one/two/${i}.txt`]: `${i}\n`.repeat(i * 40 + 1) });
  await git('tag', '-a', '-m', 'First', 'v1');
  await git('tag', '-a', '-m', 'Of a tag', 'v1-signed', 'v1');
  await git('checkout', '-q', '-b', 'side');
  for (let i = 0; i < 8; i++) await commit({ 'side.txt': `side ${i % 3}\n` });
  await git('checkout', '-q', 'main');
  for (let i = 0; i < 8; i++) await commit({ 'large.txt': `${i}\n${'a line of a large file\n'.repeat(5000)}` });
  await git('merge', '-q', '--no-edit', 'side');
  await git('tag', 'v2-light');
  await commit({ 'index.html': '<p>day 1</p>\n' });
  await git('tag', '-a', '-m', 'Second', 'v2');
}
