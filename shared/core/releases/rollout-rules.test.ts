import { describe, expect, it } from 'vitest';
import { newUuid, type ReleaseId } from '#shared/ids.ts';
import {
  decideStep,
  defaultRolloutRules,
  isClearlyWorse,
  measureStep,
  nextWeight,
  type RolloutRules,
  type Step,
  startOfStep,
} from './rollout-rules.ts';

const rules: RolloutRules = { ...defaultRolloutRules, stepSeconds: 10 };
const step: Step = {
  phase: 'serving',
  weight: 10,
  seconds: 1,
  secondsSinceRequest: 0,
  candidate: { requests: 5, errors: 0 },
  stable: { requests: 1000, errors: 0 },
  crash: undefined,
};

describe('a rollout step', () => {
  it('waits while there is traffic, but too little to judge by', () => {
    expect(decideStep(step, rules)).toEqual({ action: 'wait' });
  });

  it('passes on enough good answers, before its time', () => {
    expect(decideStep({ ...step, candidate: { requests: 20, errors: 0 } }, rules)).toEqual({
      action: 'advance',
      judgedBy: '20 requests, 0 errors',
    });
  });

  it('passes by its time', () => {
    expect(decideStep({ ...step, seconds: 10 }, rules)).toEqual({ action: 'advance', judgedBy: '5 requests, 0 errors' });
  });

  it('passes at once without traffic', () => {
    const quiet = { ...step, seconds: 0, secondsSinceRequest: Number.POSITIVE_INFINITY };
    expect(decideStep(quiet, rules)).toEqual({ action: 'advance' });
  });

  it('waits while instances are being started, whatever the traffic is', () => {
    const starting = { ...step, phase: 'starting', weight: 0, secondsSinceRequest: Number.POSITIVE_INFINITY } as const;
    expect(decideStep(starting, rules)).toEqual({ action: 'wait' });
  });

  it('ends with a promotion, after the last weight below 100 and at 100', () => {
    expect(decideStep({ ...step, weight: 50, seconds: 10 }, rules)).toMatchObject({ action: 'promote' });
    expect(decideStep({ ...step, weight: 100 }, rules)).toEqual({ action: 'promote' });
  });

  it('aborts on a crash, whatever the traffic says', () => {
    const crashed = { ...step, candidate: { requests: 500, errors: 0 }, crash: 'web.1 exited with code 1' };
    expect(decideStep(crashed, rules)).toEqual({ action: 'abort', cause: 'web.1 exited with code 1 at 10%' });
    const cause = 'web.1 exited with code 1';
    expect(decideStep({ ...crashed, phase: 'starting', weight: 0 }, rules)).toEqual({ action: 'abort', cause });
    expect(decideStep({ ...crashed, weight: 100 }, rules)).toEqual({ action: 'abort', cause });
  });

  it('aborts on clearly more errors, though there are enough good answers', () => {
    expect(decideStep({ ...step, candidate: { requests: 40, errors: 15 } }, rules)).toEqual({
      action: 'abort',
      cause: '15 of 40 requests failed at 10% of the traffic, 0 of 1000 on the previous release',
    });
  });

  it('is judged by what came since it began', () => {
    const facts = (weight: number, requests: number, errors: number) => ({
      releaseId: newUuid<ReleaseId>(),
      releaseVersion: 2,
      phase: 'serving' as const,
      weight,
      traffic: {
        candidate: { requests, errors, totalMilliseconds: 0, latencies: [] },
        stable: { requests: 1000, errors: 7, totalMilliseconds: 0, latencies: [] },
      },
      secondsSinceRequest: 0,
      crash: undefined,
      failure: undefined,
    });
    const start = startOfStep(facts(10, 4, 1), undefined, new Date(1000));
    const later = facts(10, 24, 2);
    expect(startOfStep(later, start, new Date(3000))).toBe(start);
    expect(measureStep(later, start, new Date(3000))).toMatchObject({
      seconds: 2,
      candidate: { requests: 20, errors: 1 },
      stable: { requests: 1000, errors: 7 },
    });
    const next = startOfStep(facts(25, 24, 2), start, new Date(4000));
    expect(measureStep(facts(25, 30, 2), next, new Date(4500))).toMatchObject({
      seconds: 0.5,
      candidate: { requests: 6, errors: 0 },
    });
  });

  it('ends with 100', () => {
    expect([0, 10, 25, 50].map((weight) => nextWeight(rules.weights, weight))).toEqual([10, 25, 50, 100]);
    expect(nextWeight([10], 10)).toBe(100);
  });
});

describe('clearly worse', () => {
  it.each([
    ['one error may be bad luck', { requests: 5, errors: 1 }, { requests: 10_000, errors: 0 }, false],
    ['half against none', { requests: 10, errors: 5 }, { requests: 10_000, errors: 0 }, true],
    ['as bad as the old one', { requests: 100, errors: 30 }, { requests: 1000, errors: 300 }, false],
    ['twice as bad with many requests', { requests: 1000, errors: 600 }, { requests: 1000, errors: 300 }, true],
    ['an old release that nobody asked', { requests: 10, errors: 8 }, { requests: 0, errors: 0 }, true],
    ['better than the old one', { requests: 1000, errors: 10 }, { requests: 1000, errors: 300 }, false],
  ])('%s', (_name, candidate, stable, expected) => {
    expect(isClearlyWorse(candidate, stable, rules)).toBe(expected);
  });
});
