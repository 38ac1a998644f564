import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import { isWritableRef, refNameProblem } from '#shared/git/refs/ref-name.ts';
import { tryGit } from '#shared/git/testing/git-client.ts';

it('allows exactly the names that git allows', async () => {
  const pieces = [
    'a',
    '.',
    '..',
    '/',
    '//',
    '~',
    '^',
    ':',
    '?',
    '*',
    '[',
    '\\',
    '@',
    '@{',
    '{',
    '.lock',
    'lock',
    ' ',
    '\t',
    '\x7f',
    'é',
    '-',
    'HEAD',
    'a.b',
    '\x01',
  ];
  const names = pieces.flatMap((one) => pieces.map((other) => `refs/heads/${one}${other}`));
  const disagreements: string[] = [];
  for (let at = 0; at < names.length; at += 25) {
    const batch = names.slice(at, at + 25);
    const theirs = await Promise.all(batch.map((name) => tryGit(tmpdir(), ['check-ref-format', name])));
    batch.forEach((name, i) => {
      if ((refNameProblem(name) === undefined) !== (theirs[i]?.code === 0)) disagreements.push(name);
    });
  }
  expect(disagreements).toEqual([]);
});

it('lets pushes write branches, tags and notes only', () => {
  expect(['refs/heads/a', 'refs/tags/v1', 'refs/notes/commits'].every(isWritableRef)).toBe(true);
  expect(['refs/pull/1/head', 'HEAD', 'refs/heads/-x', 'refs/heads/HEAD', 'refs/remotes/o/m'].some(isWritableRef)).toBe(false);
});
