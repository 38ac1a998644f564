import { writeFile } from 'node:fs/promises';

/** Of the platform's processes; 0 is the default, -1000 the lowest. */
const oomScoreAdjustment = -500;

/**
 * Lets the kernel end other processes first when memory runs out. Processes that this one starts inherit it (gateway, PostgreSQL), but
 * not those of tenants, which are in sandboxes.
 * @returns false without the capability CAP_SYS_RESOURCE: then tenants' processes are ended first by their own adjustment only
 */
export async function protectFromOutOfMemory(): Promise<boolean> {
  return writeFile('/proc/self/oom_score_adj', String(oomScoreAdjustment)).then(
    () => true,
    () => false,
  );
}
