import { defineConfig } from 'vitest/config';

/** Real builds by every builder; `npm test` runs the quick ones. */
export default defineConfig({
  test: {
    globalSetup: ['test/support/run/global-set-up.ts'],
    setupFiles: ['test/support/run/each-file.ts'],
    environment: 'node',
    pool: 'forks',
    include: ['test/builders/**/*.test.ts', 'shared/platform/local/builds/builders/builders.test.ts'],
    // Registries may be slow, and compilers on a busy machine are.
    testTimeout: 300_000,
    hookTimeout: 60_000,
    teardownTimeout: 60_000,
  },
});
