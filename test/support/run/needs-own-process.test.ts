import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { needsOwnProcess } from '#test/support/run/needs-own-process.ts';

const fileOf = (specifier: string): string => fileURLToPath(import.meta.resolve(specifier));

it('gives a file that measures its process a process of its own', () => {
  expect(needsOwnProcess(fileOf('#api/git/git-body.test.ts'))).toBe(true);
});

it('lets other files share one', () => {
  expect(needsOwnProcess(fileOf('#shared/clock.test.ts'))).toBe(false);
});
