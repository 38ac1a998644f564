import { AppError } from '#shared/errors.ts';
import type { Log } from '#shared/log.ts';
import type { CallTokens } from './call-tokens.ts';
import { type CallableMethods, callPath, type SentError, type StreamLine, streamType, toSentError } from './remote-calls.ts';
import { decodeValue, encodeValue } from './remote-values.ts';

/** A port that other processes may call. */
export interface OfferedPort {
  readonly methods: CallableMethods;
  readonly driver: object;
}

export interface RemoteServerOptions {
  /** By the name that callers use. */
  ports: Readonly<Record<string, OfferedPort>>;
  tokens: Pick<CallTokens, 'verify'>;
  log: Pick<Log, 'warn'>;
}

/** Arguments are ids and queries. */
const mostBytes = 1024 * 1024;
/** Sent while a stream has no items, so that whoever is in between keeps the connection. */
const idleMilliseconds = 15_000;

type Method = (...args: readonly unknown[]) => unknown;

/** Answers calls of other processes of the platform: a `fetch` function. Every call must be signed. */
export function createRemoteServer({ ports, tokens, log }: RemoteServerOptions): (request: Request) => Promise<Response> {
  const answer = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    const [, , port = '', method = '', ...rest] = pathname.split('/');
    const [, token = ''] = /^Bearer (\S+)$/.exec(request.headers.get('authorization') ?? '') ?? [];
    if (Number(request.headers.get('content-length') ?? Number.NaN) > mostBytes) throw tooLarge();
    const body = token === '' ? '' : await readBody(request);
    await tokens.verify(token, callPath(port, method), body);

    const offered = Object.hasOwn(ports, port) ? ports[port] : undefined;
    const isStream = offered?.methods.streams?.includes(method) === true;
    if (
      request.method !== 'POST' ||
      rest.length > 0 ||
      offered === undefined ||
      !(isStream || offered.methods.calls.includes(method))
    )
      throw new AppError('not_found', `There is no call ${port}.${method}. Do both processes run the same version?`);
    const run = (offered.driver as Record<string, Method>)[method]?.bind(offered.driver);
    if (run === undefined) throw new AppError('not_found', `The driver has no ${port}.${method}.`);

    const gone = new AbortController();
    request.signal.addEventListener('abort', () => gone.abort(), { once: true });
    const args = decodeValue(body, gone.signal) as unknown[];
    if (isStream) return sendStream(run(...args) as AsyncIterable<unknown>, gone, log);
    return new Response(encodeValue(await run(...args)), { headers: { 'content-type': 'application/json' } });
  };
  return (request) =>
    answer(request).catch((error: unknown) => {
      const sent = toSentError(error);
      if (!(error instanceof AppError))
        log.warn('A call of another process failed.', { path: new URL(request.url).pathname, error });
      return new Response(encodeValue({ error: sent }), {
        status: statusOf(sent),
        headers: { 'content-type': 'application/json' },
      });
    });
}

function statusOf({ code }: SentError): number {
  return code === 'unauthorized' ? 401 : code === 'not_found' ? 404 : code === 'internal' ? 500 : 422;
}

function tooLarge(): AppError {
  return new AppError('validation_failed', 'The arguments of the call are too large.');
}

async function readBody(request: Request): Promise<string> {
  const text = await request.text();
  if (text.length > mostBytes) throw tooLarge();
  return text;
}

function sendStream(items: AsyncIterable<unknown>, gone: AbortController, log: Pick<Log, 'warn'>): Response {
  const iterator = items[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  const encode = (line: StreamLine): Uint8Array => encoder.encode(`${encodeValue(line)}\n`);
  let idle: ReturnType<typeof setInterval> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      idle = setInterval(() => {
        try {
          controller.enqueue(encoder.encode('\n'));
        } catch {
          clearInterval(idle);
        }
      }, idleMilliseconds);
    },
    async pull(controller) {
      try {
        const next = await iterator.next();
        if (next.done !== true) return controller.enqueue(encode({ item: next.value }));
        controller.enqueue(encode({ end: true }));
      } catch (error) {
        if (!(error instanceof AppError) && !gone.signal.aborted) log.warn('A stream to another process failed.', { error });
        controller.enqueue(encode({ error: toSentError(error) }));
      }
      clearInterval(idle);
      controller.close();
    },
    async cancel() {
      clearInterval(idle);
      gone.abort();
      await iterator.return?.();
    },
  });
  return new Response(body, { headers: { 'content-type': streamType } });
}
