import type { ApiRequests } from './api-requests.ts';
import { bodyLines } from './body-lines.ts';
import type { LogRange, PodContainer, TimedLine } from './cluster.ts';
import { kinds } from './kinds.ts';
import { readStatus } from './list-objects.ts';
import { objectPath } from './object-path.ts';
import { refusal } from './refusals.ts';

/** Characters of a line that has no end yet. */
const longestLine = 64 * 1024;

/** See `Cluster.streamPodLog`. */
export async function* streamPodLog(
  requests: ApiRequests,
  pod: PodContainer,
  follow: boolean,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const rest = yield* readLog(requests, pod, { follow: String(follow) }, signal);
  if (!follow && rest !== '') yield rest;
}

const longestReadMilliseconds = 30_000;

/** See `Cluster.readTimedLog`. */
export async function* readTimedLog(
  requests: ApiRequests,
  pod: PodContainer,
  { since, newest, previous }: LogRange,
): AsyncGenerator<TimedLine> {
  const query = {
    timestamps: 'true',
    sinceTime: new Date(Number(since / 1_000_000_000n) * 1000).toISOString(),
    previous: String(previous),
    ...(newest === undefined ? {} : { tailLines: String(newest) }),
  };
  // A line whose end is missing is still being written, or cut off.
  for await (const text of readLog(requests, pod, query, AbortSignal.timeout(longestReadMilliseconds))) {
    const line = parseTimedLine(text);
    if (line !== undefined) yield line;
  }
}

/**
 * The kubelet's time, a space, and what was printed.
 * @internal for its test
 */
export function parseTimedLine(text: string): TimedLine | undefined {
  const [, seconds = '', fraction = '', zone = '', line = ''] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ?(.*)$/s.exec(text) ?? [];
  const milliseconds = Date.parse(`${seconds}${zone}`);
  if (Number.isNaN(milliseconds)) return undefined;
  return { time: BigInt(milliseconds) * 1_000_000n + BigInt(fraction.padEnd(9, '0')), line };
}

async function* readLog(
  requests: ApiRequests,
  { namespace, name, container }: PodContainer,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
): AsyncGenerator<string, string> {
  const attempt = { verb: 'get', kind: kinds.pod, name, namespace, subresource: 'log' };
  const leaving = new AbortController();
  const path = `${objectPath(attempt, 'log')}?${new URLSearchParams({ container, ...query }).toString()}`;
  try {
    const response = await requests.send({ method: 'GET', path }, AbortSignal.any([signal, leaving.signal]));
    // 400: the container has not started yet, or there is none before it.
    if (response.status === 400 || response.status === 404) return '';
    if (!response.ok || response.body === null) throw refusal(attempt, response.status, await readStatus(response));
    return yield* bodyLines(response.body, longestLine);
  } finally {
    // Ends the request also when whoever reads this stops to.
    leaving.abort();
  }
}
