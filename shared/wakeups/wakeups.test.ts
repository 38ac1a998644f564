import { describeWakeups } from '#shared/wakeups/contract/wakeups.ts';
import { createWakeups } from '#shared/wakeups/wakeups.ts';

describeWakeups('within one process', async () => {
  const wakeups = createWakeups();
  return { one: wakeups, other: wakeups, close: async () => undefined };
});
