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

const rules: RolloutRules = { ...defaultRolloutRules, stepSeconds: 10, restartSeconds: 60 };
const step: Step = {
  phase: 'serving',
  weight: 10,
  seconds: 1,
  secondsSinceRequest: 0,
  candidate: { requests: 3, errors: 0 },
  total: { requests: 3, errors: 0 },
  stable: { requests: 1000, errors: 0 },
  crash: undefined,
  asked: { seconds: Number.POSITIVE_INFINITY, hasHadVisitors: false, stableAnswersRoot: undefined },
};

describe('a rollout step', () => {
  it('waits while there is traffic, but too little to judge by', () => {
    expect(decideStep(step, rules)).toEqual({ action: 'wait' });
  });

  it.each([
    [10, 4],
    [25, 10],
    [50, 20],
    [100, 20],
  ])('at %i%% passes on %i good answers over all steps together, before its time', (weight, requests) => {
    const at = (total: number) => decideStep({ ...step, weight, total: { requests: total, errors: 0 } }, rules).action;
    expect(at(requests - 1)).toBe('wait');
    expect(at(requests)).toBe(weight < 100 ? 'advance' : 'promote');
  });

  it('passes by its time, and later when there are errors that are too few to judge by', () => {
    expect(decideStep({ ...step, seconds: 10 }, rules)).toEqual({ action: 'advance', judgedBy: '3 requests, 0 errors' });
    const single = { ...step, seconds: 10, candidate: { ...step.candidate, requests: 1, errors: 1 } };
    expect(decideStep(single, rules)).toEqual({ action: 'advance', judgedBy: '1 request, 1 error' });
    const doubtful = { ...step, total: { requests: 3, errors: 1 } };
    expect(decideStep({ ...doubtful, seconds: 29 }, rules)).toEqual({ action: 'wait' });
    expect(decideStep({ ...doubtful, seconds: 30 }, rules)).toMatchObject({ action: 'advance' });
  });

  it('takes 4 seconds in all from 5 requests a second on, and less with more', () => {
    const quick: RolloutRules = { ...defaultRolloutRules, stepSeconds: 1, restartSeconds: 60 };
    const secondsAt = (rate: number): number => {
      let seconds = 0;
      let total = 0;
      for (const weight of quick.weights) {
        for (let inStep = 0; ; inStep += 0.1) {
          const requests = Math.floor(total + (rate * inStep * weight) / 100);
          const counts = { requests, errors: 0 };
          const { action } = decideStep(
            {
              ...step,
              weight,
              seconds: inStep,
              candidate: counts,
              total: counts,
              asked: { ...step.asked, candidate: { path: '/', isOwnPath: false, answers: [200] } },
            },
            quick,
          );
          if (action === 'wait') continue;
          seconds += inStep;
          total = requests;
          break;
        }
      }
      return seconds;
    };
    expect(secondsAt(100)).toBeLessThan(1.2);
    expect(secondsAt(10)).toBeLessThan(4.5);
    expect(secondsAt(5)).toBeLessThan(4.5);
  });

  it('passes at once without traffic', () => {
    const none = { requests: 0, errors: 0 };
    const quiet = { ...step, seconds: 0, candidate: none, total: none, secondsSinceRequest: Number.POSITIVE_INFINITY };
    expect(decideStep(quiet, rules)).toEqual({ action: 'advance' });
  });

  it('waits while instances are being started, whatever the traffic is', () => {
    const starting = { ...step, phase: 'starting', weight: 0, secondsSinceRequest: Number.POSITIVE_INFINITY } as const;
    expect(decideStep(starting, rules)).toEqual({ action: 'wait' });
  });

  it('ends with a promotion at 100, at once for a first release', () => {
    expect(decideStep({ ...step, weight: 100, seconds: 1 }, rules)).toEqual({ action: 'wait' });
    expect(decideStep({ ...step, weight: 100, seconds: 10 }, rules)).toMatchObject({ action: 'promote' });
    expect(decideStep({ ...step, weight: 100 }, { ...rules, weights: [100] })).toEqual({ action: 'promote' });
  });

  describe('before all traffic, with too small a sample', () => {
    const last = { ...step, weight: 50, seconds: 10 };
    const answered = (...answers: (number | string)[]) => ({
      ...last.asked,
      seconds: 0.1,
      candidate: { path: '/', isOwnPath: false, answers },
    });

    it('has the new release asked first, and not with enough visitors', () => {
      expect(decideStep(last, rules)).toEqual({ action: 'ask', whom: 'candidate' });
      expect(decideStep({ ...last, total: { requests: 8, errors: 0 } }, rules)).toMatchObject({ action: 'advance' });
      expect(decideStep({ ...last, asked: answered(200) }, rules)).toMatchObject({ action: 'advance' });
      expect(decideStep({ ...last, asked: answered(500) }, rules)).toEqual({ action: 'ask', whom: 'stable' });
    });

    it('waits for an instance that has ended by the question', () => {
      const crashed = { ...last, asked: answered('gave no answer'), crash: 'web.1 exited with code 1' };
      expect(decideStep(crashed, rules)).toEqual({ action: 'wait' });
      const later = { ...crashed, asked: { ...crashed.asked, seconds: 61 } };
      expect(decideStep(later, rules)).toMatchObject({ action: 'abort', cause: 'web.1 exited with code 1 at 50%' });
    });
  });

  it('aborts on a crash, whatever the traffic says', () => {
    const crashed = { ...step, total: { requests: 500, errors: 0 }, crash: 'web.1 exited with code 1' };
    expect(decideStep(crashed, rules)).toEqual({ action: 'abort', cause: 'web.1 exited with code 1 at 10%' });
    const cause = 'web.1 exited with code 1';
    expect(decideStep({ ...crashed, phase: 'starting', weight: 0 }, rules)).toEqual({ action: 'abort', cause });
    expect(decideStep({ ...crashed, weight: 100 }, rules)).toEqual({ action: 'abort', cause });
  });

  it('aborts on clearly more errors, though there are enough good answers', () => {
    expect(decideStep({ ...step, total: { requests: 40, errors: 15 } }, rules)).toEqual({
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
      total: { requests: 24, errors: 2 },
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
