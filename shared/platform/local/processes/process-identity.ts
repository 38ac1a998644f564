import { readdir, readFile } from 'node:fs/promises';

/** Identifies a process for ever: another process with the same pid differs, also after a restart of the machine. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks between the starts of the machine and of the process. */
  readonly startTicks: number;
  /** Of /proc/sys/kernel/random/boot_id. */
  readonly bootId: string;
}

/** Undefined when there is no such process, or only a zombie. */
export async function readProcessIdentity(pid: number): Promise<ProcessIdentity | undefined> {
  const [stat, bootId] = await Promise.all([
    readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''),
    readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
  ]);
  // The name in parentheses may hold anything, so count fields from its end: state is the 3rd, start time the 22nd.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const startTicks = Number(fields[19]);
  return stat === '' || fields[0] === 'Z' || fields[0] === 'X' ? undefined : { pid, startTicks, bootId: bootId.trim() };
}

/** Whether this very process runs. */
export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  const now = await readProcessIdentity(identity.pid);
  return now !== undefined && now.startTicks === identity.startTicks && now.bootId === identity.bootId;
}

/** All descendants of a process, children first. */
export async function readDescendants(pid: number): Promise<readonly number[]> {
  const tasks = await readdir(`/proc/${pid}/task`).catch(() => []);
  const children = await Promise.all(tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, 'utf8').catch(() => '')));
  const pids = children
    .join(' ')
    .split(' ')
    .filter((part) => part.trim() !== '')
    .map(Number);
  return [...pids, ...(await Promise.all(pids.map(readDescendants))).flat()];
}

/** False when there is no such process any more. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
