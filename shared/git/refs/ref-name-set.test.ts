import { expect, it } from 'vitest';
import { RefNameSet } from '#shared/git/refs/ref-name-set.ts';

it('finds names that would be a directory and a file at once', () => {
  const names = new RefNameSet(['refs/heads/a/b', 'refs/heads/c'], ['refs/heads/d/e']);
  expect(names.conflictWith('refs/heads/a')).toBe('refs/heads/a/b');
  expect(names.conflictWith('refs/heads/c/d')).toBe('refs/heads/c');
  expect(names.conflictWith('refs/heads/a-b')).toBeUndefined();
  expect(names.conflictWith('refs/heads/d')).toBeUndefined();
  names.add('refs/heads/d/e');
  expect(names.conflictWith('refs/heads/d')).toBe('refs/heads/d/e');
});
