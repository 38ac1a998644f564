import type { Clock } from '#shared/clock.ts';
import type { TolerableFault } from '#shared/git/objects/tolerable-faults.ts';
import type { PackCatalog } from '#shared/git/packs/catalog/pack-catalog.ts';
import type { PackFiles } from '#shared/git/packs/files/pack-files.ts';
import type { RefDriver } from '#shared/git/refs/ref-driver.ts';
import type { TaskRunner } from '#shared/git/worker/task-runner.ts';
import type { Log } from '#shared/log.ts';

/** What serving, reading and maintaining repositories depend on: the drivers, and what does the heavy work. */
export interface RepositoryAccess {
  readonly refs: RefDriver;
  readonly catalog: PackCatalog;
  readonly files: PackFiles;
  readonly workers: TaskRunner;
  /** Holds each repository's quarantine. */
  readonly directory: string;
  readonly log: Log;
  readonly clock: Clock;
  /** Faults that objects may have. */
  readonly tolerated: readonly TolerableFault[];
}
