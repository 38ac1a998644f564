import { defineConfig } from 'vitest/config';

/** A real Gitea beside a real platform: `npm run test:gitea`. */
export default defineConfig({
  test: {
    globalSetup: ['test/support/run/global-set-up.ts'],
    setupFiles: ['test/support/run/each-file.ts'],
    environment: 'node',
    pool: 'forks',
    include: ['test/gitea/**/*.test.ts'],
    testTimeout: 180_000,
    // The first run builds Gitea.
    hookTimeout: 3_600_000,
    teardownTimeout: 60_000,
  },
});
