import { fetch, type Response } from 'undici';
import { AppError } from '#shared/errors.ts';

/** A line as Loki keeps it. */
export interface LokiEntry {
  /** Nanoseconds since 1970. */
  time: bigint;
  labels: Readonly<Record<string, string>>;
  line: string;
}

/** Which lines. */
export interface LokiQuery {
  /** Must all match. */
  labels: Readonly<Record<string, string>>;
  /** Nanoseconds, inclusive. */
  from: bigint;
  /** Nanoseconds, exclusive. */
  to: bigint;
  limit: number;
  /** Which ones, when there are more: 'backward' the newest, 'forward' the oldest. */
  direction: 'backward' | 'forward';
}

/** The HTTP API of Loki, as far as the driver uses it. */
export interface Loki {
  /** In the order of time; entries of the same time in an order that is always the same. */
  query(query: LokiQuery): Promise<LokiEntry[]>;
  /** @param entries with the same labels */
  push(entries: readonly LokiEntry[]): Promise<void>;
  /** Asks the compactor to delete all lines with these labels. */
  delete(labels: Readonly<Record<string, string>>): Promise<void>;
}

/** Where Loki is. */
export interface LokiSettings {
  /** 'http://loki-gateway.monitoring.svc' */
  url: string;
  /** Its tenant; undefined where it has none. */
  tenant: string | undefined;
}

const timeoutMilliseconds = 30_000;

export function connectLoki({ url, tenant }: LokiSettings): Loki {
  const origin = url.replace(/\/$/, '');

  async function send(path: string, body?: object): Promise<Response> {
    const method = body === undefined && !path.startsWith('/loki/api/v1/delete') ? 'GET' : 'POST';
    let response: Response;
    try {
      response = await fetch(`${origin}${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...(tenant === undefined ? {} : { 'x-scope-orgid': tenant }) },
        signal: AbortSignal.timeout(timeoutMilliseconds),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (error) {
      throw new AppError('internal', `Loki at ${origin} does not answer. Logs are not lost; try again later.`, { cause: error });
    }
    if (response.ok) return response;
    const cause = new Error(`${response.status}: ${(await response.text()).slice(0, 500)}`);
    throw new AppError('internal', `Loki at ${origin} refused a request of the platform with status ${response.status}.`, {
      cause,
    });
  }

  return {
    async query({ labels, from, to, limit, direction }) {
      const parameters = new URLSearchParams({
        query: selector(labels),
        start: String(from),
        end: String(to),
        limit: String(limit),
        direction,
      });
      const response = await send(`/loki/api/v1/query_range?${parameters.toString()}`);
      const { data } = (await response.json()) as {
        data: { result: readonly { stream: Record<string, string>; values: readonly (readonly [string, string])[] }[] };
      };
      return data.result
        .flatMap(({ stream, values }) => values.map(([time, line]) => ({ time: BigInt(time), labels: stream, line })))
        .toSorted(compareEntries);
    },
    async push(entries) {
      const values = entries.map(({ time, line }) => [String(time), line]);
      await (await send('/loki/api/v1/push', { streams: [{ stream: entries[0]?.labels ?? {}, values }] })).body?.cancel();
    },
    async delete(labels) {
      const parameters = new URLSearchParams({ query: selector(labels), start: '2000-01-01T00:00:00Z' });
      await (await send(`/loki/api/v1/delete?${parameters.toString()}`)).body?.cancel();
    },
  };
}

/** LogQL: strings are quoted as in Go, which JSON's quotes are as well. */
function selector(labels: Readonly<Record<string, string>>): string {
  return `{${Object.entries(labels)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(',')}}`;
}

function compareEntries(a: LokiEntry, b: LokiEntry): number {
  if (a.time !== b.time) return a.time < b.time ? -1 : 1;
  const [one, other] = [a, b].map(({ labels, line }) => `${labels['pod']} ${labels['stream']} ${line}`);
  return (one ?? '') < (other ?? '') ? -1 : 1;
}
