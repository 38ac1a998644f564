import { fetch, type Response } from 'undici';
import { AppError } from '#shared/errors.ts';

/** One series of an answer. */
export interface PrometheusSeries {
  labels: Readonly<Record<string, string>>;
  /** Seconds since 1970, and the value. */
  points: readonly (readonly [seconds: number, value: number])[];
}

/** The HTTP API of Prometheus, as far as the driver uses it. */
export interface Prometheus {
  /** The values now. */
  query(query: string): Promise<PrometheusSeries[]>;
  /** The values at each step from `from` to `to`, both included. @param from and `to` in seconds */
  queryRange(query: string, from: number, to: number, stepSeconds: number): Promise<PrometheusSeries[]>;
}

const timeoutMilliseconds = 30_000;

/** @param url 'http://prometheus.monitoring.svc:9090' */
export function connectPrometheus(url: string): Prometheus {
  const origin = url.replace(/\/$/, '');

  async function ask(path: string, parameters: Readonly<Record<string, string>>): Promise<PrometheusSeries[]> {
    let response: Response;
    try {
      // By POST: queries are longer than some proxies let an address be.
      response = await fetch(`${origin}${path}`, {
        method: 'POST',
        body: new URLSearchParams(parameters),
        signal: AbortSignal.timeout(timeoutMilliseconds),
      });
    } catch (error) {
      throw new AppError('internal', `Prometheus at ${origin} does not answer. Apps are not affected; try again later.`, {
        cause: error,
      });
    }
    if (!response.ok) {
      const cause = new Error(`${response.status}: ${(await response.text()).slice(0, 500)}`);
      throw new AppError(
        'internal',
        `Prometheus at ${origin} refused a request of the platform with status ${response.status}.`,
        {
          cause,
        },
      );
    }
    type Point = readonly [number, string];
    const { data } = (await response.json()) as {
      data: { result: readonly { metric: Record<string, string>; values?: readonly Point[]; value?: Point }[] };
    };
    return data.result.map(({ metric, values, value }) => ({
      labels: metric,
      points: (values ?? (value === undefined ? [] : [value])).map(([seconds, text]) => [seconds, Number(text)] as const),
    }));
  }

  return {
    query: (query) => ask('/api/v1/query', { query }),
    queryRange: (query, from, to, stepSeconds) =>
      ask('/api/v1/query_range', { query, start: String(from), end: String(to), step: String(stepSeconds) }),
  };
}
