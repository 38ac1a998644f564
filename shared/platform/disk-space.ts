/** Port: the disk that builds, images, logs and the platform's own data share. */

export interface DiskSpace {
  /** Undefined where builds and apps share no disk with the platform. */
  readDiskSpace(): Promise<DiskSpaceFacts | undefined>;
}

export interface DiskSpaceFacts {
  readonly totalBytes: number;
  /** That the platform's own processes can still write. */
  readonly freeBytes: number;
  /** What must stay free for the platform's own data. Builds are ended before they use any of it. */
  readonly reserveBytes: number;
  /** How many files and directories the file system can have; 0 where it knows no limit. */
  readonly totalFiles: number;
  readonly freeFiles: number;
}
