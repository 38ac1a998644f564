import { setTimeout as delay } from 'node:timers/promises';
import { failureOf, unreachable } from '#cli/api-errors.ts';
import type { Send } from '#cli/client.ts';
import { CliError, exitCodes } from '#cli/errors.ts';
import { readEvents, type ServerEvent } from '#cli/event-stream.ts';

export interface FollowOptions {
  readonly host: string;
  readonly send: Send;
  /** Asked before each connection, with the id of the last event ('' before the first): a request that goes on after it. */
  readonly nextRequest: (lastEventId: string) => Request;
  /** Told once for each time the connection was lost. */
  readonly onLost: () => void;
  /** Seconds without a connection after which it gives up. */
  readonly patienceSeconds: number;
}

const firstPauseMs = 250;
const longestPauseMs = 5000;
const steadySeconds = 10;

/**
 * Events of a stream that is connected again whenever it breaks or ends; it is over when the caller stops reading.
 * @throws CliError when the platform refuses, or stays away longer than the patience
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
        if (event.event === 'error') throw failureOf(JSON.parse(event.data), new Response(null, { status: 500 }));
        lostAt = undefined;
        pauseMs = firstPauseMs;
        lastEventId = event.id;
        yield event;
      }
    } catch (error) {
      if (!isLoss(error)) throw error;
      loss = error;
    }
    // A stream that was silent for long and then ended was a good one.
    if (Date.now() - startedAt > steadySeconds * 1000) lostAt = undefined;
    if (lostAt === undefined && loss !== undefined) options.onLost();
    lostAt ??= Date.now();
    if (Date.now() - lostAt > options.patienceSeconds * 1000)
      throw loss instanceof CliError ? loss : unreachable(options.host, loss);
    await delay(pauseMs);
    pauseMs = Math.min(pauseMs * 2, longestPauseMs);
  }
}

async function connect({ host, send, nextRequest }: FollowOptions, lastEventId: string): Promise<AsyncIterable<Uint8Array>> {
  const request = nextRequest(lastEventId);
  request.headers.set('accept', 'text/event-stream');
  const response = await send(request);
  if (!response.ok) throw failureOf(await response.json(), response);
  if (response.body === null) throw new CliError(`${host} sent an empty answer.`);
  return response.body;
}

/** A broken connection, or a platform that is starting again; not a refusal. */
function isLoss(error: unknown): boolean {
  if (error instanceof CliError) return error.exitCode === exitCodes.unreachable || error.exitCode === exitCodes.failed;
  // What undici throws when a body breaks off.
  return error instanceof TypeError || (error instanceof Error && 'code' in error);
}
