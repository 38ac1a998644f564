import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Db } from '#shared/database/db.ts';
import { millisecondsPerDay } from '#shared/durations.ts';
import type { JobHandlers, Jobs, JobWorker } from '#shared/jobs/jobs.ts';
import { appJob, buildJob, idleHandlers } from '#shared/jobs/testing/idle-handlers.ts';

export interface JobsUnderTest {
  db: Db;
  jobs: Jobs;
  start(handlers: JobHandlers): Promise<JobWorker>;
  close(): Promise<void>;
}

/** What every driver of jobs does. */
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
      worker = await subject.start({ ...idleHandlers, build: ({ buildId }) => Promise.resolve(seen.resolve(buildId)) });
      await subject.jobs.enqueue(subject.db, 'build', buildJob('one'));
      expect(await seen.promise).toBe('one');
    });

    it('runs the jobs of one queue one after the other, in order, whichever pool runs each', async () => {
      const events: string[] = [];
      const done = Promise.withResolvers<void>();
      const run = async (name: string): Promise<void> => {
        events.push(`start ${name}`);
        await new Promise((resolve) => setImmediate(resolve));
        events.push(`end ${name}`);
        if (name === 'd') done.resolve();
      };
      worker = await subject.start({
        ...idleHandlers,
        build: ({ buildId }) => run(buildId),
        restart: ({ appId }) => run(appId),
      });
      for (const name of ['a', 'b']) await subject.jobs.enqueue(subject.db, 'build', buildJob(name), { queue: 'q' });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('c'), { queue: 'q' });
      await subject.jobs.enqueue(subject.db, 'build', buildJob('d'), { queue: 'q' });
      await done.promise;
      expect(events).toEqual(['a', 'b', 'c', 'd'].flatMap((name) => [`start ${name}`, `end ${name}`]));
    });

    it('runs a job again that threw', async () => {
      let attempts = 0;
      const done = Promise.withResolvers<void>();
      worker = await subject.start({
        ...idleHandlers,
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

    it('keeps only the newest of the waiting jobs with one key', async () => {
      const seen: string[] = [];
      const done = Promise.withResolvers<void>();
      for (const appId of ['old', 'new'])
        await subject.jobs.enqueue(subject.db, 'restart', appJob(appId), { key: 'k', queue: 'q' });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('last'), { queue: 'q' });
      worker = await subject.start({
        ...idleHandlers,
        restart: ({ appId }) => {
          seen.push(appId);
          if (appId === 'last') done.resolve();
          return Promise.resolve();
        },
      });
      await done.promise;
      expect(seen).toEqual(['new', 'last']);
    });

    it('keeps the time of a waiting job with the same key when `keepsTime` is set', async () => {
      const seen: string[] = [];
      const done = Promise.withResolvers<void>();
      const tomorrow = new Date(Date.now() + millisecondsPerDay);
      await subject.jobs.enqueue(subject.db, 'restart', appJob('first'), { key: 'early', keepsTime: true });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('soon'), { key: 'early', keepsTime: true, runAt: tomorrow });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('late'), { key: 'late', keepsTime: true, runAt: tomorrow });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('later'), { key: 'late', keepsTime: true });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('last'));
      worker = await subject.start({
        ...idleHandlers,
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
      await subject.jobs.enqueue(subject.db, 'restart', appJob('tomorrow'), { runAt: new Date(Date.now() + millisecondsPerDay) });
      await subject.jobs.enqueue(subject.db, 'restart', appJob('now'));
      worker = await subject.start({
        ...idleHandlers,
        restart: ({ appId }) => {
          seen.push(appId);
          done.resolve();
          return Promise.resolve();
        },
      });
      await done.promise;
      expect(seen).toEqual(['now']);
    });

    it('aborts the signal of a running job when the worker stops, and runs the job again on the next worker', async () => {
      const started = Promise.withResolvers<void>();
      worker = await subject.start({
        ...idleHandlers,
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
      worker = await subject.start({ ...idleHandlers, restart: ({ appId }) => Promise.resolve(again.resolve(appId)) });
      expect(await again.promise).toBe('x');
    });
  });
}
