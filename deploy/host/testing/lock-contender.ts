/**
 * A process of its own that locks data directories: for each directory that it is sent it answers 'locked' or 'refused', and
 * keeps what it has locked until it ends.
 */
import { lockDataDirectory } from '#deploy/host/data-directory.ts';

process.on('message', (dataDir: string) => {
  lockDataDirectory(dataDir).then(
    () => process.send?.('locked'),
    (error: unknown) => process.send?.(error instanceof Error ? error.message : String(error)),
  );
});
