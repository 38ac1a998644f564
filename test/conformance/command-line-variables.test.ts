import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parseSettings } from '#shared/settings/settings.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Every `PAAS_` variable that the command line reads, or names in its help and messages. */
const names = [
  ...new Set(
    globSync('cli/**/*.ts', { cwd: root, exclude: ['**/*.test.ts', '**/testing/**'] }).flatMap(
      (file) => readFileSync(`${root}/${file}`, 'utf8').match(/\bPAAS_[A-Z_]+\b/g) ?? [],
    ),
  ),
];

describe('a variable of the command line that is exported in the shell', () => {
  it('is found in the sources', () => {
    expect(names).toEqual(expect.arrayContaining(['PAAS_API_URL', 'PAAS_TENANT', 'PAAS_TOKEN']));
  });

  it.each(names)('%s does not keep the platform from starting', (name) => {
    // Long enough for a secret, and not secret.
    expect(() => parseSettings({ [name]: 'a-value-of-the-command-line' })).not.toThrow();
  });
});
