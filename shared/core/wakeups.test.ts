import { describeWakeups } from '#shared/core/contract/wakeups.ts';
import { createWakeups } from '#shared/core/wakeups.ts';

describeWakeups('within one process', async () => {
  const wakeups = createWakeups();
  return { one: wakeups, other: wakeups, close: async () => undefined };
});
