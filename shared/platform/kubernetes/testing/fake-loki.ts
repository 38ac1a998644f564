import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listenOnLoopback } from '#test/support/servers/listen-on-loopback.ts';

interface Line {
  stream: Readonly<Record<string, string>>;
  time: bigint;
  line: string;
}

/** Loki's HTTP API in memory, with the answers that its documentation shows: query_range, push, delete. */
export async function startFakeLoki(): Promise<{ url: string; stop(): Promise<void> }> {
  let lines: Line[] = [];

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://loki');
    const matchers = [...(url.searchParams.get('query') ?? '').matchAll(/(\w+)(=~?)("(?:[^"\\]|\\.)*")/g)];
    const matches = ({ stream }: Line): boolean =>
      matchers.every(([, name = '', operator = '', quoted = '']) => {
        const value = JSON.parse(quoted) as string;
        return operator === '=~' ? new RegExp(`^(?:${value})$`).test(stream[name] ?? '') : stream[name] === value;
      });
    if (url.pathname === '/loki/api/v1/push') {
      const body = JSON.parse(Buffer.concat(await request.toArray()).toString()) as {
        streams: { stream: Record<string, string>; values: [string, string][] }[];
      };
      for (const { stream, values } of body.streams)
        for (const [time, line] of values) lines.push({ stream, time: BigInt(time), line });
      response.writeHead(204).end();
    } else if (url.pathname === '/loki/api/v1/delete' && request.method === 'POST') {
      const isTime = /^\d{10}$|^\d{4}-\d\d-\d\dT/.test(url.searchParams.get('start') ?? '');
      if (isTime) lines = lines.filter((line) => !matches(line));
      response
        .writeHead(isTime ? 204 : 400)
        .end(isTime ? undefined : 'invalid start time: require unix seconds or RFC3339 format');
    } else if (url.pathname === '/loki/api/v1/query_range') {
      const [from, to] = ['start', 'end'].map((name) => BigInt(url.searchParams.get(name) ?? 0));
      const sorted = lines
        .filter((line) => matches(line) && line.time >= (from ?? 0n) && line.time < (to ?? 0n))
        .toSorted((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
      const limit = Number(url.searchParams.get('limit') ?? 100);
      const found = url.searchParams.get('direction') === 'forward' ? sorted.slice(0, limit) : sorted.slice(-limit).toReversed();
      const streams = Map.groupBy(found, ({ stream }) => JSON.stringify(stream));
      const result = [...streams.values()].map((group) => ({
        stream: group[0]?.stream,
        values: group.map(({ time, line }) => [String(time), line]),
      }));
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ status: 'success', data: { resultType: 'streams', result, stats: {} } }));
    } else response.writeHead(404).end('404 page not found');
  }

  const server = createServer((request, response) => void answer(request, response));
  const listening = await listenOnLoopback(server);
  return {
    url: `http://${listening.host}`,
    stop: () => listening.close(),
  };
}
