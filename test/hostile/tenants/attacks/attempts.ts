import { diskAttempts } from './disk-attempts.ts';
import { fileAttempts } from './file-attempts.ts';
import { informationAttempts } from './information-attempts.ts';
import { kernelAttempts } from './kernel-attempts.ts';
import { networkAttempts } from './network-attempts.ts';
import { processAttempts } from './process-attempts.ts';
import { resourceAttempts } from './resource-attempts.ts';

/** All that the attacker's code can try. Each takes and returns JSON. */
export const attempts: Readonly<Record<string, (args: never) => unknown>> = {
  ...diskAttempts,
  ...fileAttempts,
  ...informationAttempts,
  ...kernelAttempts,
  ...networkAttempts,
  ...processAttempts,
  ...resourceAttempts,
};
