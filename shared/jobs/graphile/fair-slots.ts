import type { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Db } from '#shared/database/db.ts';
import { tenantFlag } from '#shared/jobs/graphile/job-flags.ts';
import { type JobName, type JobSlots, slotsOfJobs } from '#shared/jobs/jobs.ts';
import type { Log } from '#shared/log.ts';

/** How many jobs of each kind run at once. */
export type SlotCounts = ReadonlyMap<JobSlots, number>;

/** Decides which of the waiting jobs a free slot may take. */
export interface FairSlots {
  /**
   * The flags that the next job must not have: those of kinds whose slots are taken, of tenants that have their share, and of all
   * tenants but the one whose turn it is. It resolves after the fetch of a job before has ended.
   */
  forbidFlags(): Promise<string[]>;
  /** Counts the jobs that run, by the events of graphile-worker. */
  follow(events: EventEmitter): void;
}

interface JobEvent {
  job: { task_identifier: string; flags: Readonly<Record<string, true>> | null };
}

/** The jobs of one kind in this process. */
interface Usage {
  readonly count: number;
  running: number;
  /** Of each tenant, by its flag. */
  readonly runningOf: Map<string, number>;
  /** When a job of each tenant was started last: a number that grows. Empty while nothing runs or waits. */
  readonly startedOf: Map<string, number>;
}

/** So long the idle slots of a worker share what one of them has read. A tenant that is missing there is not held back. */
const freshMilliseconds = 500;
/** A fetch that takes longer does not hold up the others: its connection may be lost. */
const longestFetchMilliseconds = 5000;

/**
 * Slots that no tenant takes from another. A tenant gets another slot of a kind only while it has fewer than are free: alone it gets half
 * of them, and the more tenants are busy, the fewer it gets, so that the next tenant finds one free. A free slot goes to the waiting tenant
 * with the fewest running jobs, and among equals to the one that was served the longest ago: however many jobs a tenant has in the
 * queue, another one waits for the end of one job at most. Waiting jobs take no slot.
 */
export function createFairSlots({ db, log, counts }: { db: Db; log: Log; counts: SlotCounts }): FairSlots {
  const usages = new Map<JobSlots, Usage>(
    [...counts].map(([slots, count]) => [slots, { count, running: 0, runningOf: new Map(), startedOf: new Map() }]),
  );
  let starts = 0;
  /** Forgotten when a job starts or ends. */
  let known: { waiting: readonly string[]; until: number } | undefined;
  let lastFetch: Promise<void> = Promise.resolve();
  let endFetch = (): void => undefined;

  /** Fetches run one after the other: each knows what the one before has taken. */
  async function waitForFetch(): Promise<void> {
    const before = lastFetch;
    const { promise, resolve } = Promise.withResolvers<void>();
    lastFetch = promise;
    const patience = new AbortController();
    const overdue = delay(longestFetchMilliseconds, undefined, { signal: patience.signal, ref: false }).catch(() => undefined);
    await Promise.race([before, overdue]);
    patience.abort();
    endFetch = resolve;
  }

  function usageOf({ job }: JobEvent): { usage: Usage | undefined; tenant: string | undefined } {
    const slots = slotsOfJobs[job.task_identifier as JobName];
    const tenant = Object.keys(job.flags ?? {}).find((flag) => flag.startsWith(tenantFlag(slots, '')));
    return { usage: usages.get(slots), tenant };
  }

  function count(event: JobEvent, change: 1 | -1): void {
    const { usage, tenant } = usageOf(event);
    if (usage === undefined) return;
    usage.running += change;
    known = undefined;
    if (tenant === undefined) return;
    const running = (usage.runningOf.get(tenant) ?? 0) + change;
    if (running === 0) usage.runningOf.delete(tenant);
    else usage.runningOf.set(tenant, running);
    if (change === -1) return;
    starts += 1;
    usage.startedOf.set(tenant, starts);
  }

  /** Tenants with a job that could start now, by their flags. */
  async function listWaiting(kinds: readonly JobSlots[]): Promise<readonly string[]> {
    if (known !== undefined && performance.now() < known.until) return known.waiting;
    try {
      const waiting = await listWaitingFlags(db, kinds);
      known = { waiting, until: performance.now() + freshMilliseconds };
      return waiting;
    } catch (error) {
      log.debug('The waiting jobs could not be read; the next job is the oldest.', { error });
      return [];
    }
  }

  return {
    async forbidFlags() {
      await waitForFetch();
      const full = [...usages].filter(([, usage]) => usage.running >= usage.count);
      const open = [...usages].filter(([, usage]) => usage.running < usage.count && usage.startedOf.size > 0);
      const forbidden = [...full.map(([slots]) => slots as string), ...open.flatMap(([, usage]) => listServed(usage))];
      if (open.length === 0) return forbidden;
      const waiting = await listWaiting(open.map(([slots]) => slots));
      for (const [slots, usage] of open) {
        const tenants = waiting.filter((flag) => flag.startsWith(tenantFlag(slots, '')));
        if (tenants.length === 0 && usage.running === 0) usage.startedOf.clear();
        const next = chooseTenant(usage, tenants);
        forbidden.push(...tenants.filter((tenant) => tenant !== next));
      }
      return forbidden;
    },

    follow(events) {
      events.on('job:start', (event: JobEvent) => {
        count(event, 1);
        endFetch();
      });
      events.on('worker:getJob:empty', () => endFetch());
      events.on('worker:getJob:error', () => endFetch());
      events.on('job:complete', (event: JobEvent) => count(event, -1));
    },
  };
}

/** Tenants that have as many slots as one may have: as many as are free. */
function listServed({ count, running: taken, runningOf }: Usage): string[] {
  return [...runningOf].filter(([, running]) => running >= count - taken).map(([tenant]) => tenant);
}

/** The tenant whose turn it is; undefined when none may have another slot. */
function chooseTenant(usage: Usage, waiting: readonly string[]): string | undefined {
  const served = new Set(listServed(usage));
  const running = (tenant: string): number => usage.runningOf.get(tenant) ?? 0;
  const started = (tenant: string): number => usage.startedOf.get(tenant) ?? 0;
  return waiting
    .filter((tenant) => !served.has(tenant))
    .toSorted((one, other) => running(one) - running(other) || started(one) - started(other))[0];
}

/** Flags of tenants with a job of these kinds that waits for a slot only: its time has come, and no other job of its queue runs. */
async function listWaitingFlags(db: Db, kinds: readonly JobSlots[]): Promise<string[]> {
  const { rows } = await sql<{ flag: string }>`
    select flag.name as flag, min(job.run_at) as since
    from graphile_worker.jobs job, jsonb_object_keys(job.flags) flag(name)
    where job.locked_at is null and job.attempts < job.max_attempts and job.run_at <= now()
      and job.flags ?| ${kinds}::text[] and flag.name like '%:%'
      and (job.queue_name is null or job.queue_name not in (
        select queue_name from graphile_worker.jobs where locked_at is not null and queue_name is not null))
    group by flag.name order by since`.execute(db);
  return rows.map(({ flag }) => flag);
}
