import type { Lifetime } from '#deploy/parts/lifetime.ts';
import { type DiskState, judgeDiskSpace } from '#shared/core/builds/disk-rules.ts';
import type { Context } from '#shared/core/context.ts';
import { limits } from '#shared/limits.ts';

const messages: Readonly<Record<DiskState, string>> = {
  enough: 'The disk of the data directory has enough room again.',
  low: 'The disk of the data directory is getting full. Make room before builds are refused.',
  full: 'The disk of the data directory is almost full: builds are refused until there is room again.',
};

/** Looks at the free disk space from time to time, and logs each change for the worse or the better. */
export function startDiskWatch(lifetime: Lifetime, { platform, log, clock }: Pick<Context, 'platform' | 'log' | 'clock'>): void {
  const ending = new AbortController();
  const watch = async (): Promise<void> => {
    for (let before: DiskState = 'enough'; !ending.signal.aborted; ) {
      try {
        const facts = await platform.diskSpace.readDiskSpace();
        const state = judgeDiskSpace(facts);
        if (state !== before) log[state === 'full' ? 'error' : 'warn'](messages[state], { ...facts });
        before = state;
      } catch (error) {
        log.warn('The free disk space could not be read.', { error });
      }
      await clock.sleep(limits.disk.checkSeconds * 1000, ending.signal).catch(() => undefined);
    }
  };
  const watching = watch();
  lifetime.onEnd(() => {
    ending.abort();
    return watching;
  });
}
