import { addonProbes } from './families/add-ons.ts';
import { diskProbes } from './families/disk.ts';
import { entryPointProbes } from './families/entry-points.ts';
import { fileProbes } from './families/files.ts';
import { informationProbes } from './families/information.ts';
import { kernelProbes } from './families/kernel.ts';
import { networkProbes } from './families/network.ts';
import { processProbes } from './families/processes.ts';
import { queueProbes } from './families/queues.ts';
import { resourceProbes } from './families/resources.ts';
import type { Probe } from './probe.ts';

/** Every probe, by family. */
export const allProbes: readonly Probe[] = [
  ...fileProbes,
  ...processProbes,
  ...networkProbes,
  ...kernelProbes,
  ...resourceProbes,
  ...diskProbes,
  ...queueProbes,
  ...entryPointProbes,
  ...informationProbes,
  ...addonProbes,
];
