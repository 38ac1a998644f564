import { readdirSync, readFileSync } from 'node:fs';

interface ProcessFacts {
  pid: number;
  parent: number;
  /** Including children that have ended and were waited for. */
  cpuSeconds: number;
  rssBytes: number;
}

const ticksPerSecond = 100;
const pageBytes = 4096;

/** These processes and all their descendants, from /proc. */
function readTree(roots: readonly number[]): ProcessFacts[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readFacts(Number(name)) ?? []);
  const inside = new Set(roots);
  for (let before = 0; before < inside.size; ) {
    before = inside.size;
    for (const { pid, parent } of all) if (inside.has(parent)) inside.add(pid);
  }
  return all.filter(({ pid }) => inside.has(pid));
}

function readFacts(pid: number): ProcessFacts | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15);
    return {
      pid,
      parent: fields[1] ?? 0,
      cpuSeconds: (utime + stime + cutime + cstime) / ticksPerSecond,
      rssBytes: (fields[21] ?? 0) * pageBytes,
    };
  } catch {
    return undefined; // It has ended.
  }
}

/** Memory of these processes and their descendants now. Shared pages count once for each process. */
export function residentBytes(roots: readonly number[]): number {
  return readTree(roots).reduce((sum, { rssBytes }) => sum + rssBytes, 0);
}

/** Resources that were used. */
export interface TreeUse {
  cpuSeconds: number;
  /** Peak of their memory together, sampled every 20 ms. */
  peakBytes: number;
}

/** What processes use while `work` runs. CPU time of children counts once their parent has waited for them. */
export async function measureTree(roots: readonly number[], work: () => Promise<void>): Promise<TreeUse> {
  const cpu = (): number => readTree(roots).reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
  let peakBytes = 0;
  const before = cpu();
  const timer = setInterval(() => {
    peakBytes = Math.max(peakBytes, residentBytes(roots));
  }, 20);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return { cpuSeconds: cpu() - before, peakBytes };
}
