import { expect, inject, it } from 'vitest';
import { replayDeliveries } from './replay-deliveries.ts';

it('a delivery that arrives many times at once, at three processes, makes one build; the other answers say `replayed`', async () => {
  const outcome = await replayDeliveries({ serverUrl: inject('postgresUrl'), processes: 3, deliveries: 5, times: 40 });
  expect(outcome).toEqual({
    answers: { '200 started': 5, '200 replayed': 5 * 39 },
    builds: 5,
    jobs: 5,
    starts: 5,
    notStartedOnce: 0,
  });
});
