import { afterAll } from 'vitest';

/** Names of the test databases that this file has open. Apart from what opens them, which most files have no need of. */
export const openDatabases = new Set<string>();

/** Registered by the set-up file of every test file, so that it runs after the file's own hooks. */
export function failOnOpenDatabases(): void {
  afterAll(() => {
    if (openDatabases.size > 0) {
      throw new Error(`This file left ${openDatabases.size} test database(s) open: close what createTestDatabase gave.`);
    }
  });
}
