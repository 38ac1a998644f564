import { tmpdir } from 'node:os';
import { afterEach, expect, it, vi } from 'vitest';
import { openDatabases } from '#test/support/database/open-databases.ts';
import { findLeftovers, readSurroundings } from '#test/support/run/leftovers.ts';

const before = readSurroundings();
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
  process.chdir(before.directory);
  openDatabases.clear();
});

it('finds nothing after a file that cleans up', () => {
  expect(findLeftovers(before)).toEqual([]);
});

it('finds fake timers', () => {
  vi.useFakeTimers();
  expect(findLeftovers(before)).toEqual([expect.stringContaining('fake timers')]);
});

it('finds variables of the environment that are new, changed or gone', () => {
  vi.stubEnv('PAAS_NEW', 'x');
  vi.stubEnv('PATH', '/nowhere');
  vi.stubEnv('HOME', undefined);
  const [found = '', ...others] = findLeftovers(before);
  expect(others).toEqual([]);
  for (const name of ['PAAS_NEW', 'PATH', 'HOME']) expect(found).toContain(name);
});

it('finds another working directory', () => {
  process.chdir(tmpdir());
  expect(findLeftovers(before)).toEqual([expect.stringContaining('working directory')]);
});

it('finds databases that are open', () => {
  openDatabases.add('paas_test_1');
  expect(findLeftovers(before)).toEqual([expect.stringContaining('1 open test database')]);
});
