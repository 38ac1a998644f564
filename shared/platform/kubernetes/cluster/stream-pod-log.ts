import type { ApiRequests } from './api-requests.ts';
import { bodyLines } from './body-lines.ts';
import type { PodContainer } from './cluster.ts';
import { kinds } from './kinds.ts';
import { readStatus } from './list-objects.ts';
import { objectPath } from './object-path.ts';
import { refusal } from './refusals.ts';

/** Characters of a line that has no end yet. */
const longestLine = 64 * 1024;

/** See `Cluster.streamPodLog`. */
export async function* streamPodLog(
  requests: ApiRequests,
  { namespace, name, container }: PodContainer,
  follow: boolean,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const attempt = { verb: 'get', kind: kinds.pod, name, namespace, subresource: 'log' };
  const leaving = new AbortController();
  const path = `${objectPath(attempt, 'log')}?container=${encodeURIComponent(container)}&follow=${follow}`;
  try {
    const response = await requests.send({ method: 'GET', path }, AbortSignal.any([signal, leaving.signal]));
    // 400: the container has not started yet.
    if (response.status === 400 || response.status === 404) return;
    if (!response.ok || response.body === null) throw refusal(attempt, response.status, await readStatus(response));
    const rest = yield* bodyLines(response.body, longestLine);
    if (!follow && rest !== '') yield rest;
  } finally {
    // Ends the request also when whoever reads this stops to.
    leaving.abort();
  }
}
