import { readFile } from 'node:fs/promises';
import { readDescendants } from './process-identity.ts';

export interface ProcessUsage {
  /** Of the process and all below it, and of those below it that have ended. */
  readonly cpuSeconds: number;
  /** Of those that live. Pages that they share count for each. */
  readonly residentBytes: number;
}

/** Linux tells processor time in hundredths of a second, whatever the kernel counts in (USER_HZ). */
const ticksPerSecond = 100;

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
 * User and system time, own and of children that were waited for. What a child used moves from its own figures into its
 * parent's when it ends, so that the sum over a tree loses nothing.
 */
function cpuTicksOf(stat: string): number {
  // The name in parentheses may hold anything, so count fields from its end: utime, stime, cutime, cstime are the 14th to 17th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return stat === '' ? 0 : fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
}
