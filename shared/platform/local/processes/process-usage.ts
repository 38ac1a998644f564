import { readFile } from 'node:fs/promises';
import { readDescendants } from './process-identity.ts';

/** What a process and its descendants use. */
export interface ProcessUsage {
  /** Processor time, that of descendants that have ended included. */
  readonly cpuSeconds: number;
  /** Of the live processes. Shared pages count for each of them. */
  readonly residentBytes: number;
}

/** Linux reports processor time in hundredths of a second, whatever unit the kernel counts in (USER_HZ). */
const ticksPerSecond = 100;

/** Zero for a process that does not exist. */
export async function readProcessUsage(pid: number): Promise<ProcessUsage> {
  const pids = [pid, ...(await readDescendants(pid))];
  const usages = await Promise.all(pids.map(readOne));
  return {
    cpuSeconds: usages.reduce((sum, { cpuTicks }) => sum + cpuTicks, 0) / ticksPerSecond,
    residentBytes: usages.reduce((sum, { residentBytes }) => sum + residentBytes, 0),
  };
}

async function readOne(pid: number): Promise<{ cpuTicks: number; residentBytes: number }> {
  const [stat, status] = await Promise.all(
    ['stat', 'status'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
  );
  return { cpuTicks: cpuTicksOf(stat ?? ''), residentBytes: Number(/^VmRSS:\s+(\d+) kB$/m.exec(status ?? '')?.[1] ?? 0) * 1024 };
}

/**
 * User and system time of a process and of its children that have ended. The time of a child moves to its parent when it ends, so
 * that the sum over a tree never decreases.
 */
function cpuTicksOf(stat: string): number {
  // The name in parentheses may hold anything, so count fields from its end: utime, stime, cutime, cstime are the 14th to 17th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return stat === '' ? 0 : fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
}
