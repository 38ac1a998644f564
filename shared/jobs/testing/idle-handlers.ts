import type { AppId, BuildId } from '#shared/ids.ts';
import { type JobHandlers, slotsOfJobs } from '#shared/jobs/jobs.ts';

/** Handlers that do nothing, for the jobs that a test is not about. */
export const idleHandlers = Object.fromEntries(
  Object.keys(slotsOfJobs).map((name) => [name, async () => undefined]),
) as unknown as JobHandlers;

/** Payloads that say which job of a test it is. */
export const appJob = (name: string): { appId: AppId } => ({ appId: name as AppId });
export const buildJob = (name: string): { buildId: BuildId } => ({ buildId: name as BuildId });
