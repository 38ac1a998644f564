import { defineConfig } from 'vitest/config';

/** The tests of what is kept in an object store, on a real one; `npm test` runs them on a fake. */
export default defineConfig({
  test: {
    globalSetup: ['test/support/run/global-set-up.ts', 'test/support/run/real-object-store.ts'],
    setupFiles: ['test/support/run/each-file.ts'],
    environment: 'node',
    pool: 'forks',
    maxWorkers: 2,
    provide: { racingPushes: 200 },
    include: [
      'shared/object-store/**/*.test.ts',
      'shared/git/storage/git-storage.test.ts',
      'shared/git/packs/files/pack-files.test.ts',
      'test/e2e/two-daemons.test.ts',
    ],
    testTimeout: 900_000,
    hookTimeout: 180_000,
    teardownTimeout: 60_000,
  },
});
