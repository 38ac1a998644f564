import { defineConfig } from 'vitest/config';

const rooms = ['api', 'cli', 'dashboard', 'deploy', 'gateway', 'shared', 'sshd'];

/** What every group shares; a group is a project, run with `--project <name>`. */
const everywhere = {
  setupFiles: ['test/support/run/each-file.ts'],
  environment: 'node',
  pool: 'forks' as const,
  // Whatever a test starts must have a chance to stop.
  teardownTimeout: 60_000,
};

export default defineConfig({
  test: {
    globalSetup: ['test/support/run/global-set-up.ts'],
    projects: [
      {
        test: {
          ...everywhere,
          name: 'unit',
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
          include: [
            ...rooms.map((room) => `${room}/**/*.test.ts`),
            ...['check', 'conformance', 'support'].map((room) => `test/${room}/**/*.test.ts`),
          ],
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      ...['e2e', 'hostile', 'crash'].map((name) => ({
        test: {
          ...everywhere,
          name,
          include: [`test/${name}/**/*.test.ts`],
          // Real servers, real clients, real builds: after the quick ones, and no more than there are processors.
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      })),
    ],
  },
});
