import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { ClientOrder, ClientResult } from './client-process.ts';
import type { Pace } from './pace.ts';
import { readFamilyTime, readProcessorTime } from './processor-time.ts';

export interface Request {
  path: string;
  headers: Record<string, string>;
}

export interface Measurement {
  requestsPerSecond: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
  /** Processor time for each request, in microseconds. */
  serverCpu: number;
  databaseCpu: number;
}

const keys = ['requestsPerSecond', 'p50', 'p99', 'serverCpu', 'databaseCpu'] as const satisfies readonly (keyof Measurement)[];

export interface Measured {
  socketPath: string;
  /** Of the server. */
  pid: number;
  /** Of its PostgreSQL. */
  databasePid: number;
  requests: readonly Request[];
  /** Waits until another round exceeds no limit of its users. */
  pace?: Pace;
}

/** A process that sends requests. */
export interface Client {
  /** Sends the requests of one round, 16 at a time; an answer other than 200 ends it. */
  measure(measured: Measured): Promise<Measurement>;
  end(): void;
}

/** Starts the process that sends requests. */
export function startClient(): Client {
  const child = fork(join(import.meta.dirname, 'client-process.ts'));
  return {
    async measure({ socketPath, pid, databasePid, requests }) {
      const order: ClientOrder = { socketPath, requests: requests.map(writeRequest) };
      const [server, database] = [await readProcessorTime(pid), await readFamilyTime(databasePid)];
      child.send(order);
      const [result] = (await once(child, 'message')) as [ClientResult];
      if ('error' in result) throw new Error(result.error);
      const microseconds = (before: number, after: number): number => ((after - before) * 1e6) / result.times.length;
      const sorted = result.times.toSorted((one, other) => one - other);
      const percentile = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
      return {
        requestsPerSecond: result.times.length / result.seconds,
        p50: percentile(0.5),
        p99: percentile(0.99),
        serverCpu: microseconds(server, await readProcessorTime(pid)),
        databaseCpu: microseconds(database, await readFamilyTime(databasePid)),
      };
    },
    end: () => void child.kill(),
  };
}

function writeRequest({ path, headers }: Request): string {
  const lines = Object.entries({ host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/** Until a server's code is compiled by how it is used, it is the start that is measured. */
const warmUpRounds = 4;
const rounds = 9;

/**
 * Measures two in alternating rounds, so that other load falls on both. All figures are medians, the ratio (one to the other)
 * that of the ratios of each round.
 */
export async function compareTwo(
  client: Client,
  first: Measured,
  second: Measured,
): Promise<{ one: Measurement; other: Measurement; ratio: Measurement }> {
  const results: { one: Measurement; other: Measurement; ratio: Measurement }[] = [];
  for (let round = -warmUpRounds; round < rounds; round += 1) {
    // The first of a round meets what the second of the round before left behind, so the order alternates.
    const order = round % 2 === 0 ? [first, second] : [second, first];
    const measured = new Map<Measured, Measurement>();
    for (const each of order) {
      await each.pace?.wait();
      measured.set(each, await client.measure(each));
      each.pace?.countRound();
    }
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
  return Object.fromEntries(keys.map((key) => [key, valueOf(key)])) as unknown as Measurement;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}
