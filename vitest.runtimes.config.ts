import { defineConfig } from 'vitest/config';

/** The conformance of the API, in the runtime of TEST_API_RUNTIME (test/runtime/runtimes.ts). */
export default defineConfig({
  test: {
    globalSetup: ['test/support/run/global-set-up.ts'],
    setupFiles: ['test/support/run/each-file.ts'],
    include: ['api/**/*.test.ts'],
    environment: 'node',
    pool: 'forks',
    maxWorkers: 2,
    expect: { poll: { timeout: 20_000 } },
    // A call that reaches a limit waits for a minute.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    teardownTimeout: 60_000,
  },
});
