import type { ServerResponse } from 'node:http';
import { Agent, type Dispatcher, Pool } from 'undici/index.js';
import type { Upstream } from '#gateway/routes/upstream.ts';
import type { ForwardTimeouts } from './forward-timeouts.ts';
import type { HeldResponse } from './not-found-fallback.ts';
import { headerPairs, type RequestPlan } from './request-plan.ts';

/**
 * Connections to upstreams that are reused. An upstream may close one just as a request is sent, so only requests that may
 * be sent again use it. This is the gateway's hot path: undici's dispatch takes half the CPU time of node:http's client.
 */
export interface ConnectionPool {
  /** Sends a request without a body, and streams the response. Returns a function that aborts it. */
  send(request: PooledRequest): () => void;
}

export interface PooledRequest {
  readonly upstream: Upstream;
  readonly method: string;
  readonly plan: RequestPlan;
  readonly response: ServerResponse;
  /** The headers for the client. @param raw those of the upstream, names and values in turn */
  readonly headersOf: (raw: readonly string[]) => string[];
  /** Whether nothing is sent to the client before the caller decides what becomes of the response. */
  readonly keepsBack?: ((status: number, response: HeldResponse) => boolean) | undefined;
  /** Called when the upstream's response is complete; its status is in `response`. */
  readonly onEnd: () => void;
  /** Called when the upstream's response broke off. */
  readonly onBroken: () => void;
  /** Called when there is no response, or it broke off while it was kept back. */
  readonly onFailed: (error: NodeJS.ErrnoException) => void;
}

/** One pool for all upstreams. */
export function createConnectionPool(timeouts: ForwardTimeouts): ConnectionPool {
  const agent = new Agent({
    // Shorter than usual servers keep idle connections: Node.js 5 s, gunicorn 2 s.
    keepAliveTimeout: 1500,
    keepAliveMaxTimeout: 1500,
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: 64 * 1024,
    headersTimeout: timeouts.responseMilliseconds,
    bodyTimeout: timeouts.idleMilliseconds,
    factory: (origin, options) =>
      new Pool(origin, { ...options, connect: { socketPath: socketPathOf(String(origin)), timeout: 10_000 } }),
  });
  return {
    send(request) {
      const handler = new ResponseHandler(request);
      const { upstream, method, plan } = request;
      agent.dispatch({ origin: originOf(upstream), path: plan.path, method, headers: plan.headers }, handler);
      return () => handler.abort();
    },
  };
}

/** undici knows upstreams by origin: the path of a unix socket is its host, in hex. */
function originOf({ address }: Upstream): string {
  if ('socketPath' in address) return `http://${Buffer.from(address.socketPath).toString('hex')}.socket`;
  return `http://${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
}

function socketPathOf(origin: string): string | null {
  const hex = /^http:\/\/([0-9a-f]+)\.socket$/.exec(origin)?.[1];
  return hex === undefined ? null : Buffer.from(hex, 'hex').toString();
}

/** Largest first chunk that is sent together with the headers. */
const joinedBytes = 16 * 1024;

interface ResponseHead {
  readonly controller: Dispatcher.DispatchController;
  readonly status: number;
  readonly statusMessage: string;
}

class ResponseHandler implements Dispatcher.DispatchHandler, HeldResponse {
  readonly #request: PooledRequest;
  #controller: Dispatcher.DispatchController | undefined;
  #aborted = false;
  #started = false;
  #hasLength = false;
  #sentBody = false;
  #dropped = false;
  #head: ResponseHead | undefined;
  #keptBack = false;
  /** What to do instead of sending the head when the response has ended or broken off while it was kept back. */
  #afterHead: (() => void) | undefined;

  constructor(request: PooledRequest) {
    this.#request = request;
  }

  abort(): void {
    this.#aborted = true;
    if (!this.#dropped) this.#controller?.abort(new Error('the client has disconnected'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#aborted) controller.abort(new Error('the client has disconnected'));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, _: unknown, statusMessage = ''): void {
    // 102 and 103 precede a response.
    if (status < 200) return;
    this.#head = { controller, status, statusMessage };
    this.#keptBack = true;
    if (this.#request.keepsBack?.(status, this) === true) {
      if (this.#keptBack) controller.pause();
      return;
    }
    this.#keptBack = false;
    this.#writeHead(this.#head);
  }

  forward(): void {
    this.#keptBack = false;
    if (this.#afterHead !== undefined) this.#afterHead();
    else if (this.#head !== undefined) {
      const { controller } = this.#head;
      this.#writeHead(this.#head);
      // Later: undici's parser cannot resume while it parses another response, which may be what decided.
      queueMicrotask(() => controller.resume());
    }
  }

  drop(): void {
    this.#keptBack = false;
    this.#dropped = true;
    this.#head?.controller.abort(new Error('the response is not needed'));
  }

  #writeHead({ controller, status, statusMessage }: ResponseHead): void {
    const { response, headersOf } = this.#request;
    const headers = headersOf(decode(controller.rawHeaders));
    this.#started = true;
    response.writeHead(status, statusMessage, headers);
    response.on('drain', () => controller.resume());
    // The first event of an event stream may take long: its headers do not wait for it.
    this.#hasLength = headers.some((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-length');
    if (!this.#hasLength) {
      setImmediate(() => {
        if (!this.#sentBody && !response.destroyed) response.flushHeaders();
      });
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#dropped) return;
    const { response } = this.#request;
    const isFirst = !this.#sentBody;
    this.#sentBody = true;
    // Node joins a string with the headers into one write; a buffer costs a second one.
    const flushed =
      isFirst && this.#hasLength && chunk.length <= joinedBytes
        ? response.write(chunk.toString('latin1'), 'latin1')
        : response.write(chunk);
    if (!flushed) controller.pause();
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (this.#dropped) return;
    if (this.#keptBack) {
      // A response without a body ends in spite of the pause.
      this.#afterHead = () => {
        if (this.#head !== undefined) this.#writeHead(this.#head);
        this.onResponseEnd(controller);
      };
      return;
    }
    const { response, onEnd } = this.#request;
    const trailers = decode(controller.rawTrailers);
    this.#sentBody = true;
    onEnd();
    if (trailers.length > 0) response.addTrailers(headerPairs(trailers));
    response.end();
  }

  onResponseError(_: unknown, error: Error): void {
    if (this.#dropped) return;
    if (this.#keptBack && !this.#aborted) {
      this.#afterHead = () => this.#request.onFailed(error);
      return;
    }
    if (this.#started) this.#request.onBroken();
    else this.#request.onFailed(error);
  }
}

/** Headers as undici's parser returns them: names and values in turn. */
function decode(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  return Array.isArray(raw) ? raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1'))) : [];
}
