/** What follows from what releases answer to the platform itself, where visitors are too few to judge by: pure functions. */
import type { ReleaseAnswers } from '#shared/platform/rollouts.ts';

/** What is known of the platform's questions to a release and of what came of them. */
export interface Asked {
  /** 'cannot': there is nothing to ask. Undefined: not asked yet. */
  candidate?: ReleaseAnswers | 'cannot';
  /** Likewise; it is asked only when the new release's answers are bad ones. */
  stable?: ReleaseAnswers | 'cannot';
  /** Since the new release was asked; Infinity before that. */
  seconds: number;
  /** Whether the new release has had a request of a visitor since then. */
  hasHadVisitors: boolean;
  /** Whether a visitor of the old release was given an answer below 500 to GET /. Undefined: not known. */
  stableAnswersRoot: boolean | undefined;
}

/** What to do next; 'go on' with the rollout. */
export type AnswersVerdict =
  | { action: 'wait' }
  | { action: 'go on' }
  | { action: 'ask'; whom: 'candidate' | 'stable' }
  | { action: 'abort'; cause: string };

/** An instance that ends by a question is known to have ended after so long. */
const settleSeconds = 2;

/**
 * The new release is asked first. The old one is asked only to compare it with bad answers, and never what the new one did not survive,
 * unless the app has set the path: nobody but the platform may ever ask for `/`.
 */
export function judgeAnswers({ candidate, stable, seconds, stableAnswersRoot }: Asked): AnswersVerdict {
  if (candidate === undefined) return { action: 'ask', whom: 'candidate' };
  if (candidate === 'cannot' || !candidate.answers.every(isBad)) return { action: 'go on' };
  const what = `GET ${candidate.path} ${describeAnswer(candidate.answers[0])}`;
  if (!candidate.isOwnPath && !candidate.answers.every(isStatus)) {
    if (stableAnswersRoot === true) return { action: 'abort', cause: `${what}, which visitors of the previous release get` };
    return seconds < settleSeconds ? { action: 'wait' } : { action: 'go on' };
  }
  if (stable === undefined) return { action: 'ask', whom: 'stable' };
  if (stable === 'cannot' || stable.answers.length === 0 || stable.answers.some(isBad)) return { action: 'go on' };
  return { action: 'abort', cause: `${what}, and ${stable.answers[0]} on the previous release` };
}

/**
 * What to do when an instance of the new release does not run. That it ended by our own question alone is no fault of the app: then
 * it is waited for. Undefined: it is the app's fault.
 * @param longestSeconds for an instance to be up again
 */
export function excuseCrash(crash: string, asked: Asked, longestSeconds: number): AnswersVerdict | undefined {
  const { candidate, seconds, hasHadVisitors, stableAnswersRoot } = asked;
  if (candidate === undefined || candidate === 'cannot' || candidate.isOwnPath || hasHadVisitors) return undefined;
  if (seconds > longestSeconds) return undefined;
  return stableAnswersRoot === true
    ? { action: 'abort', cause: `${crash} when it was asked GET ${candidate.path}, which visitors of the previous release get` }
    : { action: 'wait' };
}

/** 'answers 500', 'gave no answer within 5 s'. */
export function describeAnswer(answer: number | string | undefined): string {
  return typeof answer === 'number' ? `answers ${answer}` : (answer ?? 'was not asked');
}

function isStatus(answer: number | string): answer is number {
  return typeof answer === 'number';
}

function isBad(answer: number | string): boolean {
  return !isStatus(answer) || answer >= 500;
}
