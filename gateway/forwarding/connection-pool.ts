import type { ServerResponse } from 'node:http';
import { Agent, type Dispatcher, Pool } from 'undici';
import type { Upstream } from '../routes/upstream.ts';
import type { ForwardTimeouts } from './forward-timeouts.ts';
import { answerHeaders, type RequestPlan } from './request-plan.ts';

/**
 * Connections to upstreams that are kept for the next request. They may turn out to be closed just as a request goes
 * out, so only what may be sent again goes over them. This is the gateway's hot path: undici's dispatch costs half the
 * CPU of node:http's client.
 */
export interface KeptConnections {
  /** Sends a request without body, and streams the answer. Returns how to break off. */
  send(request: KeptRequest): () => void;
}

export interface KeptRequest {
  readonly upstream: Upstream;
  readonly method: string;
  readonly plan: RequestPlan;
  readonly response: ServerResponse;
  /** The answer came to its end; what it was is in `response`. */
  readonly ended: () => void;
  /** The answer broke off after it had begun. */
  readonly broken: () => void;
  /** No answer came. */
  readonly failed: (error: NodeJS.ErrnoException) => void;
}

export function createKeptConnections(timeouts: ForwardTimeouts): KeptConnections {
  const agent = new Agent({
    // Node's own servers close idle connections after 5 s, gunicorn after 2 s: let go of them before.
    keepAliveTimeout: 1500,
    keepAliveMaxTimeout: 1500,
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: 64 * 1024,
    headersTimeout: timeouts.answerMilliseconds,
    bodyTimeout: timeouts.idleMilliseconds,
    factory: (origin, options) => new Pool(origin, { ...options, connect: { ...socketOf(String(origin)), timeout: 10_000 } }),
  });
  return {
    send(request) {
      const answer = new KeptAnswer(request);
      const { upstream, method, plan } = request;
      agent.dispatch({ origin: originOf(upstream), path: plan.path, method, headers: plan.headers }, answer);
      return () => answer.abort();
    },
  };
}

const joinedBytes = 16 * 1024;

/** A unix socket's path is carried in the host of its origin, in hex. */
function originOf({ address }: Upstream): string {
  if ('socketPath' in address) return `http://${Buffer.from(address.socketPath).toString('hex')}.socket`;
  return `http://${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
}

function socketOf(origin: string): { socketPath?: string } {
  const hex = /^http:\/\/([0-9a-f]+)\.socket$/.exec(origin)?.[1];
  return hex === undefined ? {} : { socketPath: Buffer.from(hex, 'hex').toString() };
}

class KeptAnswer implements Dispatcher.DispatchHandler {
  readonly #request: KeptRequest;
  #controller: Dispatcher.DispatchController | undefined;
  #aborted = false;
  #answered = false;
  #hasLength = false;
  #sent = false;

  constructor(request: KeptRequest) {
    this.#request = request;
  }

  abort(): void {
    this.#aborted = true;
    this.#controller?.abort(new Error('the client has left'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#aborted) controller.abort(new Error('the client has left'));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, _: unknown, statusMessage = ''): void {
    // 102 and 103 announce an answer; they are none.
    if (status < 200) return;
    const { response } = this.#request;
    const headers = answerHeaders(decode(controller.rawHeaders));
    this.#answered = true;
    response.writeHead(status, statusMessage, headers);
    response.on('drain', () => controller.resume());
    // An event stream may have nothing to say for long: its headers do not wait for the first event.
    this.#hasLength = headers.some((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-length');
    if (!this.#hasLength) {
      setImmediate(() => {
        if (!this.#sent && !response.destroyed) response.flushHeaders();
      });
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { response } = this.#request;
    const isFirst = !this.#sent;
    this.#sent = true;
    // Node joins a string with the headers into one write; a buffer costs a second one.
    const flushed =
      isFirst && this.#hasLength && chunk.length <= joinedBytes
        ? response.write(chunk.toString('latin1'), 'latin1')
        : response.write(chunk);
    if (!flushed) controller.pause();
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    const { response, ended } = this.#request;
    const trailers = decode(controller.rawTrailers);
    this.#sent = true;
    ended();
    if (trailers.length > 0)
      response.addTrailers(
        trailers.flatMap((name, at): [string, string][] => (at % 2 === 0 ? [[name, trailers[at + 1] ?? '']] : [])),
      );
    response.end();
  }

  onResponseError(_: unknown, error: Error): void {
    if (this.#answered) this.#request.broken();
    else this.#request.failed(error);
  }
}

/** Header bytes as the parser gives them. */
function decode(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  return Array.isArray(raw) ? raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1'))) : [];
}
