import { fetch, type Response } from 'undici';
import { AppError } from '#shared/errors.ts';
import { compareEntries, type LogStore } from './log-store.ts';

/** Where Loki is. */
export interface LokiSettings {
  /** 'http://loki-gateway.monitoring.svc' */
  url: string;
  /** Its tenant; undefined where it has none. */
  tenant: string | undefined;
}

const timeoutMilliseconds = 30_000;

/** The HTTP API of Loki, as far as the driver uses it. Its compactor deletes. */
export function connectLoki({ url, tenant }: LokiSettings): LogStore {
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
    async query({ labels, pods, from, to, limit, direction }) {
      const parameters = new URLSearchParams({
        query: selector(labels, pods),
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

/** LogQL: strings are quoted as in Go, which JSON's quotes are as well. Names of pods are no more than letters, digits, dashes and dots. */
function selector(labels: Readonly<Record<string, string>>, pods?: readonly string[]): string {
  const matchers = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  if (pods !== undefined) matchers.push(`pod=~${JSON.stringify(pods.map((pod) => pod.replaceAll('.', '\\.')).join('|'))}`);
  return `{${matchers.join(',')}}`;
}
