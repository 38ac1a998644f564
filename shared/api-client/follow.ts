import { ApiError, apiErrorOf, type ErrorCode, ForeignAnswerError, UnreachableError } from '#shared/api-client/api-error.ts';
import type { Send } from '#shared/api-client/client.ts';
import { readEvents, type ServerEvent } from '#shared/api-client/event-stream.ts';

/** How to follow an event stream. */
export interface FollowOptions {
  /** Base URL of the platform, for errors. */
  readonly host: string;
  readonly send: Send;
  /** Called before each connection with the id of the last event ('' before the first). Returns a request that resumes after it. */
  readonly nextRequest: (lastEventId: string) => Request;
  /** Called once each time the connection is lost. */
  readonly onLost: () => void;
  /** Gives up after this time without a connection. */
  readonly patienceSeconds: number;
}

const firstPauseMs = 250;
const longestPauseMs = 5000;
const steadySeconds = 10;

/**
 * Reads an event stream, and connects again whenever it breaks or ends. Runs until the caller stops reading.
 * @throws ApiError when the platform refuses
 * @throws UnreachableError | ForeignAnswerError when there is no connection for `patienceSeconds`
 */
export async function* follow(options: FollowOptions): AsyncGenerator<ServerEvent> {
  let lostAt: number | undefined;
  let lastEventId = '';
  let pauseMs = firstPauseMs;
  while (true) {
    const startedAt = Date.now();
    let loss: unknown;
    try {
      for await (const event of readEvents(await connect(options, lastEventId))) {
        if (event.event === 'error') throw apiErrorOf(JSON.parse(event.data), new Response(null, { status: 500 }));
        lostAt = undefined;
        pauseMs = firstPauseMs;
        lastEventId = event.id;
        yield event;
      }
    } catch (error) {
      if (!isLoss(error)) throw error;
      loss = error;
    }
    // A stream that was open for long was a good connection, also without an event.
    if (Date.now() - startedAt > steadySeconds * 1000) lostAt = undefined;
    if (lostAt === undefined && loss !== undefined) options.onLost();
    lostAt ??= Date.now();
    if (Date.now() - lostAt > options.patienceSeconds * 1000)
      throw isAnswer(loss) ? loss : new UnreachableError(options.host, loss);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    pauseMs = Math.min(pauseMs * 2, longestPauseMs);
  }
}

async function connect({ host, send, nextRequest }: FollowOptions, lastEventId: string): Promise<ReadableStream<Uint8Array>> {
  const request = nextRequest(lastEventId);
  request.headers.set('accept', 'text/event-stream');
  const response = await send(request);
  if (!response.ok) throw apiErrorOf(await response.json(), response);
  if (response.body === null) throw new UnreachableError(host);
  return response.body;
}

/** What the platform means to be its last word. Any other error may pass when it is asked again. */
const finalCodes: ReadonlySet<string> = new Set<ErrorCode>([
  'unauthorized',
  'forbidden',
  'not_found',
  'conflict',
  'validation_failed',
  'rate_limited',
]);

/** A broken connection, or a platform that is starting again; not a refusal. */
function isLoss(error: unknown): boolean {
  if (error instanceof ApiError) return !finalCodes.has(error.code ?? '');
  // A body that breaks off: a TypeError, or in Node an error with a code.
  return isAnswer(error) || error instanceof TypeError || (error instanceof Error && 'code' in error);
}

function isAnswer(error: unknown): error is Error {
  return error instanceof ApiError || error instanceof UnreachableError || error instanceof ForeignAnswerError;
}
