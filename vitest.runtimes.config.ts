import { defineConfig } from 'vitest/config';

/** They ask no API but one in the process of the test, whatever the runtime is: `npm test` runs them. */
const inProcess = [
  'cross-origin',
  'git/git-body',
  'http/event-stream',
  'middleware/measure',
  'openapi',
  'over-http',
  'rate-limits-over-processes',
  'routes/webhooks/body-budget',
  'statements',
];

/** The conformance of the API, in the runtime of TEST_API_RUNTIME (test/runtime/runtimes.ts). */
export default defineConfig({
  test: {
    globalSetup: ['test/support/run/global-set-up.ts'],
    setupFiles: ['test/support/run/each-file.ts'],
    include: ['api/**/*.test.ts'],
    exclude: inProcess.map((name) => `api/${name}.test.ts`),
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
