import { globSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { createLongestFirst } from './test/support/run/longest-first.ts';
import { needsOwnProcess } from './test/support/run/needs-own-process.ts';

const rooms = [
  'api',
  'cli',
  'dashboard',
  'deploy',
  'gateway',
  'shared',
  'sshd',
  'test/apps',
  'test/check',
  'test/conformance',
  'test/support',
];
const unit = rooms.map((room) => `${room}/**/*.test.ts`);
/** Measures the memory that all users of a process share. */
const measuresItsProcess = ['shared/git/packs/intake/delta-cache.test.ts'];
const isolated = globSync(unit, { cwd: import.meta.dirname }).filter(
  (file) => needsOwnProcess(file) || measuresItsProcess.includes(file),
);

/** What every group shares; a group is a project, run with `--project <name>`. */
const everywhere = {
  setupFiles: ['test/support/run/each-file.ts'],
  environment: 'node',
  pool: 'forks' as const,
  // What is waited for comes; on a busy machine not within the second that is the default.
  expect: { poll: { timeout: 20_000 } },
  // Whatever a test starts must have a chance to stop.
  teardownTimeout: 60_000,
};

const quick = {
  ...everywhere,
  // More than there are processors, because many tests wait: for a server, a program, a time-out.
  maxWorkers: 4,
  sequence: { groupOrder: 0 },
  testTimeout: 30_000,
  hookTimeout: 60_000,
};

export default defineConfig({
  test: {
    globalSetup: ['test/support/run/global-set-up.ts'],
    sequence: {
      sequencer: createLongestFirst([
        'shared/platform/local/builds/builders/builders.test.ts',
        'shared/git/storage/git-storage.test.ts',
        'api/tenancy.test.ts',
        'shared/platform/local/workloads/workloads.test.ts',
        'sshd/openssh.test.ts',
        'shared/platform/local/addons/local-addons.test.ts',
        'shared/jobs/jobs.test.ts',
        'sshd/timeouts.test.ts',
        'shared/git/receive-pack/push-lifetime.test.ts',
        'deploy/gateway-process.test.ts',
        'sshd/hostile.test.ts',
        'test/crash/platform.test.ts',
        'test/e2e/push.test.ts',
        'test/e2e/workloads.test.ts',
        'test/e2e/command-line.test.ts',
        'test/e2e/addons.test.ts',
        'test/e2e/metrics.test.ts',
        'test/e2e/two-daemons.test.ts',
      ]),
    },
    projects: [
      // These share processes: what they import is read and compiled once a process, which is half of their work.
      { test: { ...quick, name: 'unit', include: unit, exclude: ['**/node_modules/**', ...isolated], isolate: false } },
      { test: { ...quick, name: 'unit-isolated', include: isolated } },
      ...['e2e', 'hostile', 'crash'].map((name) => ({
        test: {
          ...everywhere,
          name,
          include: [`test/${name}/**/*.test.ts`],
          // Real servers, real clients, real builds: after the quick ones, and fewer at once.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      })),
    ],
  },
});
