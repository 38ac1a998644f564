import { expect, it } from 'vitest';
import type { AppId, DeployId } from '#shared/ids.ts';
import type { JobHandlers } from '#shared/jobs/jobs.ts';
import { measureJobs } from '#shared/metrics/measured-jobs.ts';

const appJob = (name: string) => ({ appId: name as AppId });

it('an attempt that was asked to stop counts as none, a failed one as failed', async () => {
  const seen: string[] = [];
  const stopping = new AbortController();
  const restart = async (_payload: { appId: string }, signal: AbortSignal): Promise<void> => signal.throwIfAborted();
  const deploy = () => Promise.reject(new Error('no such deploy'));
  const handlers = measureJobs({ restart, deploy } as Partial<JobHandlers> as JobHandlers, {
    observeJob: ({ name, outcome }) => seen.push(`${name} ${outcome}`),
  });
  await handlers.restart(appJob('a'), stopping.signal);
  await expect(handlers.deploy({ deployId: 'd' as DeployId }, stopping.signal)).rejects.toThrow('no such deploy');
  stopping.abort(new Error('stopping'));
  await expect(handlers.restart(appJob('a'), stopping.signal)).rejects.toThrow('stopping');
  expect(seen).toEqual(['restart done', 'deploy failed']);
});
