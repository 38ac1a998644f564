import type { InstanceUsage } from '#shared/platform/metrics.ts';
import type { InstanceRecord } from './instance-store.ts';
import type { Programs } from './programs.ts';

/** Undefined while it does not run. */
export async function readInstanceUsage(
  programs: Pick<Programs, 'readUsage'>,
  { key, type, program }: Readonly<InstanceRecord>,
): Promise<InstanceUsage | undefined> {
  const usage = program === undefined ? undefined : await programs.readUsage(program);
  if (program === undefined || usage === undefined) return undefined;
  return { run: `${key}@${program.init.startTicks}`, type, ...usage };
}
