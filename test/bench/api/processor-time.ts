import { readdir, readFile } from 'node:fs/promises';

/** Of the kernel's clock, a second. */
const ticks = 100;

interface Stat {
  parent: number;
  /** Processor time in seconds, of the process and of its children that have ended. */
  own: number;
  ended: number;
}

async function readStat(pid: string): Promise<Stat | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // After the name, which may have spaces.
  const fields = text
    ?.slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  if (fields === undefined) return undefined;
  const [, parent = 0] = fields;
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15);
  return { parent, own: (user + system) / ticks, ended: (endedUser + endedSystem) / ticks };
}

/** Processor time of one process and all its threads, in seconds. */
export async function readProcessorTime(pid: number): Promise<number> {
  return (await readStat(String(pid)))?.own ?? 0;
}

/** Processor time of a process and its children, in seconds: of PostgreSQL, whose connections are processes. */
export async function readFamilyTime(pid: number): Promise<number> {
  const root = await readStat(String(pid));
  let seconds = (root?.own ?? 0) + (root?.ended ?? 0);
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readStat(name);
    if (stat?.parent === pid) seconds += stat.own + stat.ended;
  }
  return seconds;
}
