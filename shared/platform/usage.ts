/** Port: what an app uses and how much traffic it gets. */
import type { ReleaseTraffic } from '#shared/platform/traffic.ts';

export interface AppUsage {
  instances: readonly InstanceUsage[];
  /** Of every release that had a route of late. A count that is lower than before began anew at zero. */
  traffic: readonly ReleaseTraffic[];
}

export interface InstanceUsage {
  /** Names this run of the instance; another one after each start. */
  run: string;
  type: string;
  /** Processor time since the run began. */
  cpuSeconds: number;
  /** In memory now, without what the system would give back for the asking. */
  memoryBytes: number;
}
