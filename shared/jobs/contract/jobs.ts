import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Db } from '#shared/database/db.ts';
import type { AppId, BuildId } from '#shared/ids.ts';
import type { JobHandlers, Jobs, JobWorker } from '#shared/jobs/jobs.ts';

const appJob = (name: string) => ({ appId: name as AppId });
const buildJob = (name: string) => ({ buildId: name as BuildId });

export interface JobsUnderTest {
  db: Db;
  jobs: Jobs;
  start(handlers: JobHandlers): Promise<JobWorker>;
  close(): Promise<void>;
}

const idle: JobHandlers = {
  build: () => Promise.resolve(),
  'delete-cache': () => Promise.resolve(),
  deploy: () => Promise.resolve(),
  'ensure-app': () => Promise.resolve(),
  'ensure-workload': () => Promise.resolve(),
  restart: () => Promise.resolve(),
  'ensure-addon': () => Promise.resolve(),
  'purge-app': () => Promise.resolve(),
  'settle-domain': () => Promise.resolve(),
  repack: () => Promise.resolve(),
  'collect-garbage': () => Promise.resolve(),
};

/** What every driver of `Jobs` keeps. */
export function describeJobs(name: string, open: () => Promise<JobsUnderTest>): void {
  describe(`jobs: ${name}`, () => {
    let subject: JobsUnderTest;
    let worker: JobWorker | undefined;
    beforeEach(async () => {
      subject = await open();
    });
    afterEach(async () => {
      await worker?.stop();
      worker = undefined;
      await subject.close();
    });

    it('runs a job with the payload it was enqueued with', async () => {
      const seen = Promise.withResolvers<string>();
      worker = await subject.start({ ...idle, build: ({ buildId }) => Promise.resolve(seen.resolve(buildId)) });
      await subject.jobs.enqueue(subject.db, 'build', buildJob('one'));
      expect(await seen.promise).toBe('one');
    });

    it('runs the jobs of one queue one after the other, in order', async () => {
      const events: string[] = [];
      const done = Promise.withResolvers<void>();
      worker = await subject.start({
        ...idle,
        build: async ({ buildId }) => {
          events.push(`start ${buildId}`);
          await new Promise((resolve) => setImmediate(resolve));
          events.push(`end ${buildId}`);
          if (buildId === 'c') done.resolve();
        },
      });
      for (const buildId of ['a', 'b', 'c']) await subject.jobs.enqueue(subject.db, 'build', buildJob(buildId), { queue: 'q' });
      await done.promise;
      expect(events).toEqual(['start a', 'end a', 'start b', 'end b', 'start c', 'end c']);
    });

    it('tries a job again that threw', async () => {
      let attempts = 0;
      const done = Promise.withResolvers<void>();
      worker = await subject.start({
        ...idle,
        restart: () => {
          attempts++;
          if (attempts === 1) return Promise.reject(new Error('not yet'));
          done.resolve();
          return Promise.resolve();
        },
      });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('x'));
      await done.promise;
      expect(attempts).toBe(2);
    });

    it('keeps one job a key while it waits: the newest', async () => {
      const seen: string[] = [];
      const done = Promise.withResolvers<void>();
      for (const appId of ['old', 'new'])
        await subject.jobs.enqueue(subject.db, 'restart', appJob(appId), { key: 'k', queue: 'q' });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('last'), { queue: 'q' });
      worker = await subject.start({
        ...idle,
        restart: ({ appId }) => {
          seen.push(appId);
          if (appId === 'last') done.resolve();
          return Promise.resolve();
        },
      });
      await done.promise;
      expect(seen).toEqual(['new', 'last']);
    });

    it('leaves a job with a key its time where that is asked for', async () => {
      const seen: string[] = [];
      const done = Promise.withResolvers<void>();
      const tomorrow = new Date(Date.now() + 86_400_000);
      await subject.jobs.enqueue(subject.db, 'restart', appJob('first'), { key: 'early', keepsTime: true });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('soon'), { key: 'early', keepsTime: true, runAt: tomorrow });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('late'), { key: 'late', keepsTime: true, runAt: tomorrow });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('later'), { key: 'late', keepsTime: true });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('last'));
      worker = await subject.start({
        ...idle,
        restart: ({ appId }) => {
          seen.push(appId);
          if (seen.length === 2) done.resolve();
          return Promise.resolve();
        },
      });
      await done.promise;
      expect(seen.toSorted()).toEqual(['last', 'soon']);
    });

    it('does not run a job before its time', async () => {
      const seen: string[] = [];
      const done = Promise.withResolvers<void>();
      await subject.jobs.enqueue(subject.db, 'restart', appJob('tomorrow'), { runAt: new Date(Date.now() + 86_400_000) });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('now'));
      worker = await subject.start({
        ...idle,
        restart: ({ appId }) => {
          seen.push(appId);
          done.resolve();
          return Promise.resolve();
        },
      });
      await done.promise;
      expect(seen).toEqual(['now']);
    });

    it('tells a running job to stop, and runs it again on the next worker', async () => {
      const started = Promise.withResolvers<void>();
      worker = await subject.start({
        ...idle,
        restart: (_payload, signal) =>
          new Promise((_resolve, reject) => {
            started.resolve();
            signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
          }),
      });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('x'));
      await started.promise;
      await worker.stop();
      const again = Promise.withResolvers<string>();
      worker = await subject.start({ ...idle, restart: ({ appId }) => Promise.resolve(again.resolve(appId)) });
      expect(await again.promise).toBe('x');
    });
  });
}
