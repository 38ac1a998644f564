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
async function measure(socketPath: string, requests: readonly Request[]): Promise<Measurement> {
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

export interface Measured {
  socketPath: string;
  requests: readonly Request[];
}

/** Until a server's code is compiled by how it is used, it is the start that is measured. */
const warmUpRounds = 3;
const rounds = 5;

/**
 * Measures two in alternating rounds, so that other load falls on both. All figures are medians, the ratio (one to the other)
 * that of the ratios of each round.
 */
export async function compareTwo(
  first: Measured,
  second: Measured,
): Promise<{ one: Measurement; other: Measurement; ratio: Measurement }> {
  const results: { one: Measurement; other: Measurement; ratio: Measurement }[] = [];
  for (let round = -warmUpRounds; round < rounds; round += 1) {
    // The first of a round meets what the second of the round before left behind, so the order alternates.
    const order = round % 2 === 0 ? [first, second] : [second, first];
    const measured = new Map<Measured, Measurement>();
    for (const each of order) measured.set(each, await measure(each.socketPath, each.requests));
    const [one, other] = [measured.get(first), measured.get(second)];
    if (round >= 0 && one !== undefined && other !== undefined)
      results.push({ one, other, ratio: combine((key) => one[key] / other[key]) });
  }
  return {
    one: combine((key) => median(results.map((round) => round.one[key]))),
    other: combine((key) => median(results.map((round) => round.other[key]))),
    ratio: combine((key) => median(results.map((round) => round.ratio[key]))),
  };
}

function combine(valueOf: (key: keyof Measurement) => number): Measurement {
  return { requestsPerSecond: valueOf('requestsPerSecond'), p50: valueOf('p50'), p99: valueOf('p99') };
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}
