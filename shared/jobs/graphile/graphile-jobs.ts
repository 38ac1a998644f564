import { sql } from 'kysely';
import { flagsOf } from '#shared/jobs/graphile/job-flags.ts';
import { type Jobs, slotsOfJobs } from '#shared/jobs/jobs.ts';

/** Enqueues by SQL, so that a job commits with the rows that make it necessary. The worker's schema must exist. */
export const graphileJobs: Jobs = {
  async enqueue(db, name, payload, options = {}) {
    await sql`select graphile_worker.add_job(
      identifier => ${name},
      payload => ${JSON.stringify(payload)}::json,
      queue_name => ${options.queue ?? null},
      run_at => ${options.runAt ?? null}::timestamptz,
      job_key => ${options.key ?? null},
      flags => ${flagsOf(slotsOfJobs[name], options.tenant)}::text[],
      job_key_mode => ${options.keepsTime === true ? 'preserve_run_at' : 'replace'})`.execute(db);
  },
};
