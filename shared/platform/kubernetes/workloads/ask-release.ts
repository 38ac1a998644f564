import type { ReleaseAnswers } from '#shared/platform/rollouts.ts';

/** Which of an app's two releases is asked, where, and for what. */
export interface ReleaseQuestion {
  whom: 'candidate' | 'stable';
  /** Of the release's Service: `http://<service>.<namespace>.svc.cluster.local`. */
  origin: string;
  /** That the app has set; undefined: `/` is asked. */
  healthPath: string | undefined;
  timeoutSeconds: number;
}

const mostQuestions = 3;

/** See `Rollouts.askRelease`: one question after the other, and none more than the verdict needs. */
export async function askRelease({ whom, origin, healthPath, timeoutSeconds }: ReleaseQuestion): Promise<ReleaseAnswers> {
  const path = healthPath ?? '/';
  const answers: (number | string)[] = [];
  while (answers.length < mostQuestions) {
    const answer = await askOnce(new URL(path, origin), timeoutSeconds);
    answers.push(answer);
    if (typeof answer === 'string' || answer < 500 === (whom === 'candidate')) break;
  }
  return { path, isOwnPath: healthPath !== undefined, answers };
}

async function askOnce(url: URL, timeoutSeconds: number): Promise<number | string> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutSeconds * 1000), redirect: 'manual' });
    await response.body?.cancel();
    return response.status;
  } catch {
    return `gave no answer within ${timeoutSeconds} s`;
  }
}
