import type { DiskSpace, DiskSpaceFacts } from '#shared/platform/disk-space.ts';

export interface FakeDiskSpace extends DiskSpace {
  /** What is read from now on. */
  setDiskSpace(facts: Partial<DiskSpaceFacts>): void;
}

const gibibyte = 1024 ** 3;

/** A disk that is nearly empty until a test decides otherwise. */
export function createFakeDiskSpace(): FakeDiskSpace {
  let facts: DiskSpaceFacts = {
    totalBytes: 100 * gibibyte,
    freeBytes: 90 * gibibyte,
    reserveBytes: 2 * gibibyte,
    totalFiles: 1_000_000,
    freeFiles: 900_000,
  };
  return {
    readDiskSpace: async () => facts,
    setDiskSpace(changed) {
      facts = { ...facts, ...changed };
    },
  };
}
