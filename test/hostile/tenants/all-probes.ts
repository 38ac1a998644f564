import { fileProbes } from './families/files.ts';
import { informationProbes } from './families/information.ts';
import { kernelProbes } from './families/kernel.ts';
import { networkProbes } from './families/network.ts';
import { processProbes } from './families/processes.ts';
import type { Probe } from './probe.ts';

/** Every probe, by family. */
export const allProbes: readonly Probe[] = [
  ...fileProbes,
  ...processProbes,
  ...networkProbes,
  ...kernelProbes,
  ...informationProbes,
];
