import { expect, it } from 'vitest';
import { startWithLifetime } from '#deploy/parts/lifetime.ts';
import { startDiskWatch } from '#deploy/parts/start-disk-watch.ts';
import { systemClock } from '#shared/clock.ts';
import { createLog } from '#shared/log.ts';
import { createFakePlatform } from '#shared/platform/fake/fake-platform.ts';

it('the log says once when the disk gets full, and when there is room again', async () => {
  const lines: string[] = [];
  const log = createLog('debug', (line) => lines.push(line));
  const platform = createFakePlatform({ clock: systemClock });
  const gibibyte = 1024 ** 3;
  let next: (() => void) | undefined;
  const clock = { ...systemClock, sleep: () => new Promise<void>((resolve) => (next = resolve)) };
  const look = async (freeBytes: number): Promise<void> => {
    platform.diskSpace.setDiskSpace({ freeBytes });
    await expect.poll(() => next).toBeDefined();
    const wake = next;
    next = undefined;
    wake?.();
    await expect.poll(() => next).toBeDefined();
  };
  const watch = await startWithLifetime(async (lifetime) => {
    startDiskWatch(lifetime, { platform, log, clock });
    return { stop: () => lifetime.end('stop') };
  });
  for (const free of [50, 7, 7, 3, 3, 50]) await look(free * gibibyte);
  const said = lines.map((line) => /getting full|almost full|enough room again/.exec(line)?.[0]);
  expect(said).toEqual(['getting full', 'almost full', 'enough room again']);
  expect(lines[0]).toContain('freeBytes');
  const stopped = watch.stop();
  next?.();
  await stopped;
});
