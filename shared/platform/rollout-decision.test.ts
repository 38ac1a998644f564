import { describe, expect, it } from 'vitest';
import { decideStep, isClearlyWorse, nextWeight, type StepFacts } from './rollout-decision.ts';

const plan = { weights: [10, 25, 50, 100], stepSeconds: 10 };
const facts: StepFacts = {
  weight: 10,
  secondsOnStep: 1,
  secondsSinceRequest: 0,
  fresh: { requests: 5, errors: 0 },
  old: { requests: 1000, errors: 0 },
  crash: undefined,
};

describe('a rollout step', () => {
  it('waits while there is traffic and too little of it was seen', () => {
    expect(decideStep(facts, plan)).toEqual({ action: 'wait' });
  });

  it('passes on enough good answers, before its time', () => {
    expect(decideStep({ ...facts, fresh: { requests: 20, errors: 0 } }, plan)).toEqual({
      action: 'raise',
      weight: 25,
      detail: '20 requests, 0 errors',
    });
  });

  it('passes by its time', () => {
    expect(decideStep({ ...facts, secondsOnStep: 10 }, plan)).toMatchObject({ action: 'raise', weight: 25 });
  });

  it('passes at once without traffic', () => {
    const decision = decideStep({ ...facts, secondsOnStep: 0, secondsSinceRequest: Number.POSITIVE_INFINITY }, plan);
    expect(decision).toEqual({ action: 'raise', weight: 25 });
  });

  it('aborts on a crash, whatever the traffic says', () => {
    const decision = decideStep({ ...facts, fresh: { requests: 500, errors: 0 }, crash: 'web.1 exited with code 1' }, plan);
    expect(decision).toEqual({ action: 'abort', detail: 'web.1 exited with code 1' });
  });

  it('aborts on clearly more errors, though there are enough good answers', () => {
    expect(decideStep({ ...facts, fresh: { requests: 40, errors: 15 } }, plan)).toMatchObject({ action: 'abort' });
  });

  it('ends with 100', () => {
    expect([0, 10, 25, 50].map((weight) => nextWeight(plan.weights, weight))).toEqual([10, 25, 50, 100]);
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
  ])('%s', (_name, fresh, old, expected) => {
    expect(isClearlyWorse(fresh, old)).toBe(expected);
  });
});
