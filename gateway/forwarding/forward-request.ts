import { type ClientRequest, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { UpstreamChoice } from '#gateway/routes/choose-upstream.ts';
import { type AttemptOutcome, beginAttempt, type Upstream } from '#gateway/routes/upstream.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { ForwardTimeouts } from './forward-timeouts.ts';
import { createNotFoundFallback, type HeldResponse } from './not-found-fallback.ts';
import { headerPairs, type RequestPlan, responseHeaders } from './request-plan.ts';
import { addVisitorCookie, type Visitor } from './visitor.ts';

/** Why there is no response: no upstream could be reached, it closed the connection, or it took too long. */
export type ForwardFailure = 'unreachable' | 'closed' | 'timeout';

/** How a request is forwarded. */
export interface Forwarding {
  readonly plan: RequestPlan;
  readonly upstreams: UpstreamChoice;
  /** Undefined where the choice does not depend on the visitor. */
  readonly visitor: Visitor | undefined;
  readonly pool: ConnectionPool;
  readonly timeouts: ForwardTimeouts;
  /** See `confineCookie`. */
  readonly platformDomains: readonly string[];
  /** The client waits for 100 Continue before it sends the body. */
  readonly expectsContinue: boolean;
  /** Answers with an error response. Called at most once, and only while nothing has been sent to the client. */
  readonly fail: (failure: ForwardFailure) => void;
}

/**
 * Forwards one request and its response, streaming both ways at the pace of the slower side. When the client disconnects,
 * the request to the upstream is aborted. When the upstream breaks off, so is the client's connection: half a response must
 * never look like a whole one.
 */
export function forwardRequest(request: IncomingMessage, response: ServerResponse, forwarding: Forwarding): void {
  const { plan, upstreams, visitor, timeouts } = forwarding;
  const tried: Upstream[] = [];
  /** Each aborts one attempt. */
  const aborts: (() => void)[] = [];
  let clientGone = false;
  const chooseNext = (): Upstream | undefined => upstreams.choose(tried, visitor?.bucket);
  const headersOf = (raw: readonly string[]): string[] =>
    addVisitorCookie(responseHeaders(raw, forwarding.platformDomains), visitor?.newCookie);

  // A client that does not read the response would keep the upstream's connection for ever.
  response.setTimeout(timeouts.idleMilliseconds, () => response.destroy());
  response.once('close', () => {
    if (response.writableFinished) return;
    clientGone = true;
    for (const abort of aborts) abort();
  });

  /** There was no response: tries the next upstream if this one could not be reached. */
  const onFailed = (upstream: Upstream, error: NodeJS.ErrnoException): void => {
    if (clientGone || response.headersSent || fallback?.recover() === true) return;
    if (error.syscall !== 'connect') return forwarding.fail(isTimeout(error) ? 'timeout' : 'closed');
    tried.push(upstream);
    const next = chooseNext();
    if (next === undefined) forwarding.fail('unreachable');
    else attempt(next);
  };
  const outcome = (succeeded: boolean): AttemptOutcome => (succeeded || clientGone ? 'succeeded' : 'failed');

  const isRoot = request.method === 'GET' && (plan.path === '/' || plan.path.startsWith('/?'));
  /** An answer of a release to its first page, which the platform may ask the next release for too. */
  const noteRoot = ({ traffic }: Upstream): void => {
    if (isRoot && !clientGone && response.statusCode < 500) traffic.answersRoot = true;
  };

  /** For requests that may be sent again. */
  const attemptPooled = (upstream: Upstream): void => {
    const end = beginAttempt(upstream);
    const abort = forwarding.pool.send({
      upstream,
      method: request.method ?? 'GET',
      plan,
      response,
      headersOf,
      keepsBack:
        fallback &&
        ((status, held) =>
          fallback.keepsBack(
            upstream,
            status,
            thatEnds(held, () => end('succeeded')),
          )),
      onEnd: () => {
        end(outcome(response.statusCode < 500));
        noteRoot(upstream);
      },
      onBroken: () => {
        end(outcome(false));
        breakOff(response);
      },
      onFailed: (error) => {
        // Most likely the upstream closed the idle connection just as the request was sent, and never received it.
        const isStale = error.syscall !== 'connect' && !isTimeout(error) && !clientGone;
        end(isStale ? 'not-received' : outcome(false));
        if (isStale) attemptUnpooled(upstream);
        else onFailed(upstream, error);
      },
    });
    aborts.push(abort);
  };

  /** On a connection of its own, which cannot be stale: so no POST fails because an idle connection was closed. */
  const attemptUnpooled = (upstream: Upstream): void => {
    const end = beginAttempt(upstream);
    const outgoing = httpRequest({
      ...upstream.address,
      method: request.method ?? 'GET',
      path: plan.path,
      headers: plan.headers,
      agent: false,
      timeout: timeouts.responseMilliseconds,
      setDefaultHeaders: false,
    });
    let keptBack = false;
    aborts.push(() => {
      outgoing.destroy();
      if (keptBack) end('succeeded');
    });
    let responded = false;
    outgoing.once('response', (incoming) => {
      responded = true;
      const forward = (): void =>
        sendResponse(incoming, response, {
          headers: headersOf(incoming.rawHeaders),
          timeouts,
          onEnd: (complete) => {
            end(outcome(complete && response.statusCode < 500));
            noteRoot(upstream);
          },
        });
      const drop = (): void => {
        end('succeeded');
        outgoing.destroy();
      };
      keptBack = fallback?.keepsBack(upstream, incoming.statusCode ?? 502, { forward, drop }) === true;
      if (!keptBack) forward();
    });
    outgoing.once('timeout', () => outgoing.destroy(Object.assign(new Error('no response in time'), { code: 'ETIMEDOUT' })));
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      if (responded) return;
      end(outcome(false));
      onFailed(upstream, error);
    });
    if (!plan.hasBody) outgoing.end();
    else if (forwarding.expectsContinue) sendBodyAfterContinue(request, response, outgoing, timeouts.continueMilliseconds);
    else whenConnected(outgoing, () => sendBody(request, outgoing));
  };

  const attempt = plan.replayable ? attemptPooled : attemptUnpooled;
  const fallback =
    visitor !== undefined && plan.replayable && (request.method === 'GET' || request.method === 'HEAD')
      ? createNotFoundFallback((upstream) => upstreams.chooseOther(upstream, visitor.bucket), attempt)
      : undefined;
  const first = chooseNext();
  if (first === undefined) forwarding.fail('unreachable');
  else attempt(first);
}

/** @param onDrop called when the response is dropped */
function thatEnds(held: HeldResponse, onDrop: () => void): HeldResponse {
  const drop = (): void => {
    onDrop();
    held.drop();
  };
  return { forward: () => held.forward(), drop };
}

function isTimeout({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ETIMEDOUT' || code === 'UND_ERR_HEADERS_TIMEOUT';
}

/** No byte of the body is read before that, so that another upstream can be tried. */
function whenConnected(outgoing: ClientRequest, start: () => void): void {
  outgoing.once('socket', (socket) => {
    if (socket.connecting) socket.once('connect', start);
    else start();
  });
}

/** The headers are sent without waiting for the first byte of the body: the upstream may answer on their account alone. */
function sendBody(request: IncomingMessage, outgoing: ClientRequest): void {
  let begun = false;
  const forward = (chunk: Buffer): void => {
    begun = true;
    if (!outgoing.write(chunk)) request.pause();
  };
  request.on('data', forward);
  // A body that has already arrived is sent together with the headers.
  setImmediate(() => {
    if (!begun && !outgoing.destroyed) outgoing.flushHeaders();
  });
  outgoing.on('drain', () => request.resume());
  // The rest of a body that nobody waits for is read and dropped: many clients read the response only after they have sent it all.
  outgoing.once('close', () => {
    request.off('data', forward);
    request.resume();
  });
  request.once('end', () => {
    if (request.rawTrailers.length > 0) outgoing.addTrailers(headerPairs(request.rawTrailers));
    outgoing.end();
  });
}

function sendBodyAfterContinue(
  request: IncomingMessage,
  response: ServerResponse,
  outgoing: ClientRequest,
  milliseconds: number,
): void {
  let begun = false;
  const begin = (): void => {
    if (begun || outgoing.destroyed) return;
    begun = true;
    clearTimeout(timer);
    response.writeContinue();
    sendBody(request, outgoing);
  };
  let timer: NodeJS.Timeout | undefined;
  whenConnected(outgoing, () => {
    timer = setTimeout(begin, milliseconds);
  });
  outgoing.once('continue', begin);
  outgoing.once('response', () => {
    if (begun) return;
    // The upstream does not want the body. What the client may still send must not be read as another request.
    begun = true;
    clearTimeout(timer);
    response.shouldKeepAlive = false;
    outgoing.end();
  });
  outgoing.once('close', () => clearTimeout(timer));
}

/** @param onEnd called once; `complete` is false when the upstream broke off */
function sendResponse(
  incoming: IncomingMessage,
  response: ServerResponse,
  { headers, timeouts, onEnd }: { headers: string[]; timeouts: ForwardTimeouts; onEnd: (complete: boolean) => void },
): void {
  // It broke off while it was kept back.
  if (incoming.destroyed) {
    onEnd(false);
    return breakOff(response);
  }
  incoming.socket.setTimeout(timeouts.idleMilliseconds);
  response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage ?? '', headers);
  let sentBody = false;
  // The first event of an event stream may take long: its headers do not wait for it.
  if (incoming.headers['content-length'] === undefined) {
    setImmediate(() => {
      if (!sentBody && !response.destroyed) response.flushHeaders();
    });
  }
  const resume = (): void => {
    incoming.resume();
  };
  response.on('drain', resume);
  incoming.on('data', (chunk) => {
    sentBody = true;
    if (!response.write(chunk)) incoming.pause();
  });
  incoming.once('end', () => {
    if (!incoming.complete) return;
    sentBody = true;
    onEnd(true);
    if (incoming.rawTrailers.length > 0) response.addTrailers(headerPairs(incoming.rawTrailers));
    response.end();
  });
  const onBroken = (): void => {
    onEnd(false);
    if (!response.writableEnded) breakOff(response);
  };
  incoming.once('error', onBroken);
  incoming.once('close', () => {
    if (!incoming.complete) onBroken();
  });
}

/** Closes the connection so that no client takes it for the end of the response, not even one that reads until close. */
function breakOff(response: ServerResponse): void {
  const socket = response.socket;
  if (socket === null || 'encrypted' in socket) response.destroy();
  else socket.resetAndDestroy();
}
