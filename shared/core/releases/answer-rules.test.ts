import { describe, expect, it } from 'vitest';
import { type Asked, excuseCrash, judgeAnswers } from './answer-rules.ts';

const at = (path: string, ...answers: (number | string)[]) => ({ path, isOwnPath: path !== '/', answers });
const asked = (change: Partial<Asked> = {}): Asked => ({
  seconds: 0.1,
  hasHadVisitors: false,
  stableAnswersRoot: undefined,
  ...change,
});
const silent = 'gave no answer';

describe('questions of the platform', () => {
  it('are put to the new release first, and not to the old one when a good answer came', () => {
    expect(judgeAnswers(asked({ seconds: Number.POSITIVE_INFINITY }))).toEqual({ action: 'ask', whom: 'candidate' });
    expect(judgeAnswers(asked({ candidate: at('/', 200) }))).toEqual({ action: 'go on' });
    expect(judgeAnswers(asked({ candidate: at('/', 500, 404) }))).toEqual({ action: 'go on' });
    expect(judgeAnswers(asked({ candidate: 'cannot' }))).toEqual({ action: 'go on' });
  });

  it.each([
    ['/', 500],
    ['/health', 503],
    ['/health', silent],
  ])('GET %s: are put to the old one too when the new one says %s', (path, answer) => {
    expect(judgeAnswers(asked({ candidate: at(path, answer) }))).toEqual({ action: 'ask', whom: 'stable' });
  });

  it('abort when the old one never failed where the new one always did', () => {
    expect(judgeAnswers(asked({ candidate: at('/health', 500, 500, 500), stable: at('/health', 200, 200, 200) }))).toEqual({
      action: 'abort',
      cause: 'GET /health answers 500, and 200 on the previous release',
    });
  });

  it.each([
    ['the old one failed as well', at('/', 500)],
    ['the old one failed once', at('/', 200, 500)],
    ['the old one gave no answer', at('/', silent)],
    ['there is no old one', at('/')],
    ['the old one cannot be asked', 'cannot' as const],
  ])('go on when %s', (_name, stable) => {
    expect(judgeAnswers(asked({ candidate: at('/', 500), stable }))).toEqual({ action: 'go on' });
  });

  it('never ask the old one for what the new one gave no answer to, if the app has not set the path', () => {
    const candidate = at('/', silent);
    expect(judgeAnswers(asked({ candidate }))).toEqual({ action: 'wait' });
    expect(judgeAnswers(asked({ candidate, seconds: 2 }))).toEqual({ action: 'go on' });
  });

  it('abort there when visitors of the old one are given an answer', () => {
    expect(judgeAnswers(asked({ candidate: at('/', silent), stableAnswersRoot: true }))).toEqual({
      action: 'abort',
      cause: 'GET / gave no answer, which visitors of the previous release get',
    });
  });
});

describe('a crash', () => {
  const crash = 'web.1 exited with code 1';

  it('by our question alone is waited for, as long as an instance may take to be up again', () => {
    const candidate = at('/', silent);
    expect(excuseCrash(crash, asked({ candidate }), 60)).toEqual({ action: 'wait' });
    expect(excuseCrash(crash, asked({ candidate: at('/', 200) }), 60)).toEqual({ action: 'wait' });
    expect(excuseCrash(crash, asked({ candidate, seconds: 61 }), 60)).toBeUndefined();
  });

  it('aborts when visitors of the old release get an answer there', () => {
    expect(excuseCrash(crash, asked({ candidate: at('/', silent), stableAnswersRoot: true }), 60)).toEqual({
      action: 'abort',
      cause: 'web.1 exited with code 1 when it was asked GET /, which visitors of the previous release get',
    });
  });

  it.each([
    ['before any question', {}],
    ['by a path that the app has set', { candidate: at('/health', silent) }],
    ['after a visitor came', { candidate: at('/', silent), hasHadVisitors: true }],
    ['of what cannot be asked', { candidate: 'cannot' as const }],
  ])("%s is the app's fault", (_name, change) => {
    expect(excuseCrash(crash, asked(change), 60)).toBeUndefined();
  });
});
