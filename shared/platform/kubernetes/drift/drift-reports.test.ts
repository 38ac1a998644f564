import { expect, it } from 'vitest';
import { DriftReports } from './drift-reports.ts';

it('reports at once what drifts seldom, and ever more seldom what somebody changes again and again', () => {
  let now = 0;
  const reports = new DriftReports({ now: () => new Date(now) });
  const next = (): number => {
    const delay = reports.schedule('Service a');
    now += delay;
    return delay / 1000;
  };
  expect(Array.from({ length: 12 }, next)).toEqual([0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
  now += 4 * 600_000 + 1;
  expect(next()).toBe(0);
});

it('does not delay one object for another', () => {
  const reports = new DriftReports({ now: () => new Date(0) });
  for (let count = 0; count < 5; count += 1) reports.schedule('Service a');
  expect(reports.schedule('Service b')).toBe(0);
});
