import { Pool } from 'undici';

export interface Request {
  path: string;
  headers: Record<string, string>;
}

export interface Measurement {
  requestsPerSecond: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
}

const connections = 16;

/** Sends the requests to the server at `socketPath`, 16 at a time; an answer other than 200 ends it. */
export async function measure(socketPath: string, requests: readonly Request[]): Promise<Measurement> {
  const pool = new Pool('http://localhost', { socketPath, connections });
  const times: number[] = [];
  const queue = requests.values();
  const began = performance.now();
  const work = async (): Promise<void> => {
    for (const request of queue) {
      const sent = performance.now();
      const { statusCode, body } = await pool.request({ ...request, method: 'GET' });
      const text = await body.text();
      times.push(performance.now() - sent);
      if (statusCode !== 200) throw new Error(`${request.path} answered ${statusCode}: ${text}`);
    }
  };
  try {
    await Promise.all(Array.from({ length: connections }, work));
  } finally {
    await pool.close();
  }
  const seconds = (performance.now() - began) / 1000;
  const sorted = times.toSorted((one, other) => one - other);
  const percentile = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
  return { requestsPerSecond: times.length / seconds, p50: percentile(0.5), p99: percentile(0.99) };
}

/** Of several rounds the middle one by requests per second: one hiccup of the machine decides nothing. */
export function middle(rounds: readonly Measurement[]): Measurement {
  const sorted = rounds.toSorted((one, other) => one.requestsPerSecond - other.requestsPerSecond);
  const found = sorted[Math.floor(sorted.length / 2)];
  if (found === undefined) throw new Error('nothing was measured');
  return found;
}
