import { type ClientRequest, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AttemptOutcome, beginAttempt, type ChooseUpstream, type Upstream } from '../routes/upstream.ts';
import type { KeptConnections } from './connection-pool.ts';
import type { ForwardTimeouts } from './forward-timeouts.ts';
import { answerHeaders, type RequestPlan } from './request-plan.ts';

/** Why there is no answer to pass on: nobody could be reached, the connection broke, or it took too long. */
export type ForwardFailure = 'unreachable' | 'broken' | 'late';

export interface Forwarding {
  readonly plan: RequestPlan;
  readonly choose: ChooseUpstream;
  readonly kept: KeptConnections;
  readonly timeouts: ForwardTimeouts;
  /** The client asked to be told before it sends the body. */
  readonly expectsContinue: boolean;
  /** Answers in the gateway's own name. Called at most once, and only while nothing was sent to the client. */
  readonly fail: (failure: ForwardFailure) => void;
}

/**
 * Passes one request on and its answer back, streaming both ways at the pace of the slower side. A client that leaves
 * ends the upstream's work; an upstream that breaks off ends the client's connection, so that half an answer never looks
 * like a whole one.
 */
export function forwardRequest(request: IncomingMessage, response: ServerResponse, forwarding: Forwarding): void {
  const { plan, choose, timeouts } = forwarding;
  const tried: Upstream[] = [];
  let abort: () => void = () => undefined;
  let clientGone = false;

  response.once('close', () => {
    if (response.writableFinished) return;
    clientGone = true;
    abort();
  });

  /** No answer came: elsewhere, once more, or not at all. */
  const failed = (upstream: Upstream, error: NodeJS.ErrnoException): void => {
    if (clientGone || response.headersSent) return;
    if (error.syscall !== 'connect') return forwarding.fail(isTimeout(error) ? 'late' : 'broken');
    tried.push(upstream);
    const next = choose(tried);
    if (next === undefined) forwarding.fail('unreachable');
    else attempt(next);
  };
  const outcome = (good: boolean): AttemptOutcome => (good || clientGone ? 'good' : 'failed');

  /** For what may be sent again. */
  const attemptKept = (upstream: Upstream): void => {
    const end = beginAttempt(upstream);
    abort = forwarding.kept.send({
      upstream,
      method: request.method ?? 'GET',
      plan,
      response,
      ended: () => end(outcome(response.statusCode < 500)),
      broken: () => {
        end(outcome(false));
        cutOff(response);
      },
      failed: (error) => {
        // Most likely the upstream closed the kept connection just as the request went out, and never saw it.
        const isStale = error.syscall !== 'connect' && !isTimeout(error) && !clientGone;
        end(isStale ? 'unseen' : outcome(false));
        if (isStale) attemptFresh(upstream);
        else failed(upstream, error);
      },
    });
  };

  /** On a connection of its own, which cannot be stale: a POST never fails for a race that nobody caused. */
  const attemptFresh = (upstream: Upstream): void => {
    const end = beginAttempt(upstream);
    const outgoing = httpRequest({
      ...upstream.address,
      method: request.method ?? 'GET',
      path: plan.path,
      headers: plan.headers,
      agent: false,
      timeout: timeouts.answerMilliseconds,
      setDefaultHeaders: false,
    });
    abort = () => outgoing.destroy();
    let answered = false;
    outgoing.once('response', (incoming) => {
      answered = true;
      sendAnswer(incoming, response, timeouts, (complete) => end(outcome(complete && response.statusCode < 500)));
    });
    outgoing.once('timeout', () => outgoing.destroy(Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' })));
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      if (answered) return;
      end(outcome(false));
      failed(upstream, error);
    });
    if (!plan.hasBody) outgoing.end();
    else if (forwarding.expectsContinue) sendBodyAfterContinue(request, response, outgoing, timeouts.continueMilliseconds);
    else whenConnected(outgoing, () => sendBody(request, outgoing));
  };

  const attempt = plan.replayable ? attemptKept : attemptFresh;
  const first = choose(tried);
  if (first === undefined) forwarding.fail('unreachable');
  else attempt(first);
}

function isTimeout({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ETIMEDOUT' || code === 'UND_ERR_HEADERS_TIMEOUT';
}

/** Until then not a byte of the body is taken, so that another upstream can be tried. */
function whenConnected(outgoing: ClientRequest, start: () => void): void {
  outgoing.once('socket', (socket) => {
    if (socket.connecting) socket.once('connect', start);
    else start();
  });
}

function sendBody(request: IncomingMessage, outgoing: ClientRequest): void {
  request.on('data', (chunk) => {
    if (!outgoing.write(chunk)) request.pause();
  });
  outgoing.on('drain', () => request.resume());
  request.once('end', () => {
    if (request.rawTrailers.length > 0) outgoing.addTrailers(pairs(request.rawTrailers));
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
    clearTimeout(patience);
    response.writeContinue();
    sendBody(request, outgoing);
  };
  let patience: NodeJS.Timeout | undefined;
  whenConnected(outgoing, () => {
    patience = setTimeout(begin, milliseconds);
  });
  outgoing.once('continue', begin);
  outgoing.once('response', () => {
    if (begun) return;
    // A final answer instead: the body stays with the client, and what it might still send must not be read as a request.
    begun = true;
    clearTimeout(patience);
    response.shouldKeepAlive = false;
    outgoing.end();
  });
  outgoing.once('close', () => clearTimeout(patience));
}

/** @param ended called once; `complete` is false when the upstream broke off */
function sendAnswer(
  incoming: IncomingMessage,
  response: ServerResponse,
  timeouts: ForwardTimeouts,
  ended: (complete: boolean) => void,
): void {
  incoming.socket.setTimeout(timeouts.idleMilliseconds);
  response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage ?? '', answerHeaders(incoming.rawHeaders));
  let begun = false;
  // An event stream may have nothing to say for long: its headers do not wait for the first event.
  if (incoming.headers['content-length'] === undefined) {
    setImmediate(() => {
      if (!begun && !response.destroyed) response.flushHeaders();
    });
  }
  const resume = (): void => {
    incoming.resume();
  };
  response.on('drain', resume);
  incoming.on('data', (chunk) => {
    begun = true;
    if (!response.write(chunk)) incoming.pause();
  });
  incoming.once('end', () => {
    if (!incoming.complete) return;
    begun = true;
    ended(true);
    if (incoming.rawTrailers.length > 0) response.addTrailers(pairs(incoming.rawTrailers));
    response.end();
  });
  const broken = (): void => {
    ended(false);
    if (!response.writableEnded) cutOff(response);
  };
  incoming.once('error', broken);
  incoming.once('close', () => {
    if (!incoming.complete) broken();
  });
}

/** Ends the connection in a way that no client takes for the end of the answer, not even one that reads until close. */
function cutOff(response: ServerResponse): void {
  const socket = response.socket;
  if (socket === null || 'encrypted' in socket) response.destroy();
  else socket.resetAndDestroy();
}

function pairs(raw: readonly string[]): [string, string][] {
  return raw.flatMap((name, index): [string, string][] => (index % 2 === 0 ? [[name, raw[index + 1] ?? '']] : []));
}
