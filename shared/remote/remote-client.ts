import { AppError } from '#shared/errors.ts';
import type { CallTokens } from './call-tokens.ts';
import { callPath, fromSentError, type RemoteCaller, type SentError, type StreamLine, streamType } from './remote-calls.ts';
import { decodeValue, encodeValue } from './remote-values.ts';

export interface RemoteClientOptions {
  /** Of the process that answers, without a path. */
  baseUrl: string;
  tokens: Pick<CallTokens, 'sign'>;
  /** By default that of the runtime. */
  fetch?: (request: Request) => Promise<Response>;
  /** A call without an answer fails after so long. Streams have no limit. */
  timeoutSeconds?: number;
}

const defaultTimeoutSeconds = 20;

/** Calls ports of another process of the platform by HTTP. It needs web standards only. */
export function createRemoteClient(options: RemoteClientOptions): RemoteCaller {
  const { baseUrl, tokens, fetch: send = fetch, timeoutSeconds = defaultTimeoutSeconds } = options;

  const ask = async (port: string, method: string, args: readonly unknown[], signal: AbortSignal): Promise<Response> => {
    const path = callPath(port, method);
    const body = encodeValue(args);
    const headers = { authorization: `Bearer ${await tokens.sign(path, body)}`, 'content-type': 'application/json' };
    const response = await send(new Request(`${baseUrl}${path}`, { method: 'POST', headers, body, signal })).catch(
      (cause: unknown) => {
        throw new AppError('internal', 'The machine that runs the apps cannot be reached. Try again in a minute.', { cause });
      },
    );
    if (response.ok) return response;
    const text = await response.text();
    throw readError(text, response.status);
  };

  return {
    async call(port, method, args) {
      const response = await ask(port, method, args, AbortSignal.timeout(timeoutSeconds * 1000));
      return decodeValue(await response.text());
    },
    async *stream(port, method, args) {
      const stopped = args.find((arg) => arg instanceof AbortSignal);
      // A consumer that stops early ends the call, too.
      const ended = new AbortController();
      const signal = stopped === undefined ? ended.signal : AbortSignal.any([stopped, ended.signal]);
      try {
        const response = await ask(port, method, args, signal);
        if (response.body === null || response.headers.get('content-type') !== streamType)
          throw new AppError('internal', `${port}.${method} did not answer with a stream.`);
        yield* readStream(response.body);
      } catch (error) {
        // As the ports do: an aborted iteration ends, or throws the signal's reason.
        if (stopped?.aborted === true) return;
        throw error;
      } finally {
        ended.abort();
      }
    },
  };
}

async function* readStream(body: ReadableStream<Uint8Array>): AsyncIterable<unknown> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    for (const text of lines) {
      if (text === '') continue;
      const line = decodeValue(text) as StreamLine;
      if ('end' in line) return;
      if ('error' in line) throw fromSentError(line.error);
      yield line.item;
    }
  }
  throw new AppError('internal', 'The machine that runs the apps ended the stream. Try again.');
}

function readError(text: string, status: number): AppError {
  try {
    return fromSentError((decodeValue(text) as { error: SentError }).error);
  } catch (cause) {
    return new AppError('internal', `The machine that runs the apps answered ${status}.`, { cause });
  }
}
