import { readdir, readFile } from 'node:fs/promises';
import { sendSignal } from './process-identity.ts';

/**
 * Kills processes that were started right before the control plane died, so that their pids were not recorded. They are found by a
 * variable in their environment.
 */
export async function endUnrecorded(name: string, value: string): Promise<void> {
  const pids = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry)).map(Number);
  const environments = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')));
  const wanted = `${name}=${value}`;
  pids.forEach((pid, at) => {
    if (pid !== process.pid && environments[at]?.split('\0').includes(wanted) === true) sendSignal(pid, 'SIGKILL');
  });
}
