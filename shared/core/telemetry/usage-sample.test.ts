import { describe, expect, it } from 'vitest';
import { sampleUsage, type UsageReading } from '#shared/core/telemetry/usage-sample.ts';
import type { AppUsage } from '#shared/platform/metrics.ts';

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000);
const web = (run: string, cpuSeconds: number, memoryBytes = 100) => ({ run, type: 'web', cpuSeconds, memoryBytes });
const traffic = (releaseVersion: number, requests: number, errors = 0, totalMilliseconds = 0, latencies: number[] = []) => ({
  releaseVersion,
  requests,
  errors,
  totalMilliseconds,
  latencies,
});

function sampleAfter(before: AppUsage, now: AppUsage, seconds = 10) {
  const { reading } = sampleUsage(undefined, before, at(0), 10);
  return sampleUsage(reading, now, at(seconds), 10).samples;
}

describe('a sample of usage', () => {
  it('is the difference of two readings, and the sum over instances and releases', () => {
    const samples = sampleAfter(
      { instances: [web('a', 1), web('b', 5)], traffic: [traffic(1, 100, 7, 900, [60, 40, 0])] },
      {
        instances: [web('a', 1.5, 30), web('b', 6, 40), { run: 'c', type: 'worker', cpuSeconds: 2, memoryBytes: 9 }],
        traffic: [traffic(1, 110, 8, 1000, [64, 46, 0]), traffic(2, 5, 5, 50, [0, 4, 0, 1, 0])],
      },
    );
    expect(samples).toEqual([
      {
        type: 'web',
        seconds: 10,
        cpuSeconds: 1.5,
        memoryBytes: 70,
        requests: 15,
        errors: 6,
        milliseconds: 150,
        latencies: [4, 10, 0, 1],
      },
      { type: 'worker', seconds: 10, cpuSeconds: 2, memoryBytes: 9, requests: 0, errors: 0, milliseconds: 0, latencies: [] },
    ]);
  });

  it('counts from zero what has begun again: a run of an instance, and a release after a gateway crash', () => {
    const samples = sampleAfter(
      { instances: [web('a', 50)], traffic: [traffic(1, 100, 50, 5000)] },
      { instances: [web('b', 0.4)], traffic: [traffic(1, 3, 1, 20)] },
    );
    expect(samples).toMatchObject([{ cpuSeconds: 0.4, requests: 3, errors: 1, milliseconds: 20 }]);
  });

  it('counts a processor time that fell within one run as none', () => {
    const samples = sampleAfter({ instances: [web('a', 50)], traffic: [] }, { instances: [web('a', 49)], traffic: [] });
    expect(samples).toMatchObject([{ cpuSeconds: 0 }]);
  });

  it('has the requests of a release whose instances are gone', () => {
    const samples = sampleAfter({ instances: [], traffic: [traffic(1, 1)] }, { instances: [], traffic: [traffic(1, 4)] });
    expect(samples).toMatchObject([{ type: 'web', requests: 3, memoryBytes: 0 }]);
  });

  it('covers the whole time since the last reading', () => {
    const samples = sampleAfter({ instances: [web('a', 1)], traffic: [] }, { instances: [web('a', 61)], traffic: [] }, 120);
    expect(samples).toMatchObject([{ seconds: 120, cpuSeconds: 60 }]);
  });

  it('has no latencies when the last reading had none, since it is unknown how many are new', () => {
    const before: UsageReading = { at: at(0), cpu: {}, traffic: { 1: { requests: 2, errors: 0, milliseconds: 3 } } };
    const { samples } = sampleUsage(before, { instances: [], traffic: [traffic(1, 3, 0, 9, [1, 2])] }, at(10), 10);
    expect(samples).toMatchObject([{ requests: 1, latencies: [] }]);
  });

  it('is empty for an app without instances and requests', () => {
    const before: UsageReading = { at: at(0), cpu: {}, traffic: { 1: { requests: 2, errors: 0, milliseconds: 3 } } };
    expect(sampleUsage(before, { instances: [], traffic: [traffic(1, 2, 0, 3)] }, at(10), 10).samples).toEqual([]);
  });
});
