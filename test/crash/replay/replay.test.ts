import { expect, inject, it } from 'vitest';
import { replayDeliveries } from './replay-deliveries.ts';

it('one delivery many times at once, over three processes: one build, and every repetition is told so', async () => {
  const outcome = await replayDeliveries({ serverUrl: inject('postgresUrl'), processes: 3, deliveries: 5, times: 40 });
  expect(outcome).toEqual({
    answers: { '200 started': 5, '200 replayed': 5 * 39 },
    builds: 5,
    jobs: 5,
    starts: 5,
    unfair: 0,
  });
});
