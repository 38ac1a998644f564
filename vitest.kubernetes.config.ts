import { defineConfig } from 'vitest/config';

/** The driver of Kubernetes on a real API server with real controllers, which are built with Go the first time. */
export default defineConfig({
  test: {
    globalSetup: ['test/support/run/global-set-up.ts', 'test/kubernetes/cluster/set-up.ts'],
    setupFiles: ['test/support/run/each-file.ts'],
    environment: 'node',
    pool: 'forks',
    maxWorkers: 2,
    include: ['test/kubernetes/**/*.test.ts'],
    expect: { poll: { timeout: 30_000 } },
    testTimeout: 120_000,
    hookTimeout: 180_000,
    teardownTimeout: 60_000,
  },
});
