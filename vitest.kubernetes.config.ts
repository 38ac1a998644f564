import { defineConfig } from 'vitest/config';

const common = {
  setupFiles: ['test/support/run/each-file.ts'],
  environment: 'node',
  pool: 'forks' as const,
  expect: { poll: { timeout: 30_000 } },
  testTimeout: 120_000,
  hookTimeout: 180_000,
  teardownTimeout: 60_000,
};

const globalSetup = ['test/support/run/global-set-up.ts', 'test/kubernetes/cluster/set-up-programs.ts'];

/** The driver of Kubernetes on a real API server with real controllers, which are built with Go the first time. */
export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      {
        test: {
          ...common,
          name: 'kubernetes',
          globalSetup: [...globalSetup, 'test/kubernetes/cluster/set-up-cluster.ts'],
          include: ['test/kubernetes/*.test.ts'],
        },
      },
      // Each file starts a cluster of its own.
      { test: { ...common, name: 'kubernetes-end-to-end', globalSetup, include: ['test/kubernetes/end-to-end/*.test.ts'] } },
    ],
  },
});
