import { statfs } from 'node:fs/promises';
import { limits } from '#shared/limits.ts';
import type { DiskSpace, DiskSpaceFacts } from '#shared/platform/disk-space.ts';

/** The disk of this machine's data directory. */
export interface LocalDiskSpace extends DiskSpace {
  readDiskSpace(): Promise<DiskSpaceFacts>;
}

/** @param reserveBytes left out: a share of the disk, which is small on small disks */
export function createLocalDiskSpace(dataDir: string, reserveBytes?: number): LocalDiskSpace {
  return {
    async readDiskSpace() {
      const { blocks, bavail, bsize, files, ffree } = await statfs(dataDir);
      const totalBytes = blocks * bsize;
      return {
        totalBytes,
        freeBytes: bavail * bsize,
        reserveBytes: reserveBytes ?? Math.min(limits.disk.reserveBytes, Math.floor(totalBytes * limits.disk.reserveShare)),
        totalFiles: files,
        freeFiles: ffree,
      };
    },
  };
}
