import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isWritableRef, refNameProblem } from '#shared/git/refs/ref-name.ts';
import { git, tryGit } from '#shared/git/testing/git-client.ts';
import { PackBuilder } from '#shared/git/testing/pack-builder.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-ref-name-'));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

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
  // fsck checks the names of tag objects with the same function as `git check-ref-format`, all in one process.
  const names = [...new Set(pieces.flatMap((one) => pieces.map((other) => `${one}${other}`)))];
  const builder = new PackBuilder();
  const blob = builder.add('blob', 'x');
  const ids = names.map((name) =>
    builder.add('tag', `object ${blob}\ntype blob\ntag ${name}\ntagger A <a@example.com> 1700000000 +0000\n\nmessage\n`),
  );
  await git(directory, 'init', '-q', '--bare', '.');
  expect(await tryGit(directory, ['index-pack', '--stdin'], builder.build())).toMatchObject({ code: 0 });
  const { stderr } = await tryGit(directory, ['fsck', '--strict', '--no-dangling']);
  const invalid = new Set([...stderr.matchAll(/([0-9a-f]{40}): badTagName/g)].map(([, id]) => id));
  const theirs = names.filter((_, i) => invalid.has(ids[i]));
  expect(theirs.length).toBeGreaterThan(names.length / 3);
  expect(theirs.length).toBeLessThan(names.length);
  expect(names.filter((name) => refNameProblem(`refs/heads/${name}`) !== undefined)).toEqual(theirs);
});

it('lets pushes write branches, tags and notes only', () => {
  expect(['refs/heads/a', 'refs/tags/v1', 'refs/notes/commits'].every(isWritableRef)).toBe(true);
  expect(['refs/pull/1/head', 'HEAD', 'refs/heads/-x', 'refs/heads/HEAD', 'refs/remotes/o/m'].some(isWritableRef)).toBe(false);
});
