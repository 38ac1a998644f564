import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { beginAttempt, countRequest, type Upstream } from '#gateway/routes/upstream.ts';
import type { Forwarding } from './forward-request.ts';
import type { ForwardTimeouts } from './forward-timeouts.ts';
import { headerPairs, responseHeaders } from './request-plan.ts';

/**
 * Forwards a request to upgrade (RFC 9110 §7.8). If the upstream accepts it, every byte is forwarded both ways until one
 * side closes; if not, its response is forwarded. The connection counts as in flight all the time, and as a request once
 * the upstream has responded.
 * @param head bytes that the client has already sent after its request
 */
export function forwardUpgrade(
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
  forwarding: Omit<Forwarding, 'expectsContinue' | 'pool'>,
): void {
  const { plan, timeouts, platformDomains } = forwarding;
  const choose = (tried: readonly Upstream[]) => forwarding.upstreams.choose(tried, forwarding.visitor?.bucket);
  const tried: Upstream[] = [];
  const kept = ({ rawHeaders }: IncomingMessage): string[] => responseHeaders(rawHeaders, platformDomains);

  const attempt = (upstream: Upstream): void => {
    const startedAt = performance.now();
    const end = beginAttempt(upstream);
    let responded = false;
    const outgoing = httpRequest({
      ...upstream.address,
      method: request.method ?? 'GET',
      path: plan.path,
      headers: plan.headers,
      agent: false,
      timeout: timeouts.responseMilliseconds,
      setDefaultHeaders: false,
    });
    const abort = (): void => {
      outgoing.destroy();
    };
    client.once('close', abort);

    outgoing.once('upgrade', (response, upstreamSocket, upstreamHead) => {
      responded = true;
      countRequest(upstream, false, startedAt);
      client.write(
        responseHead(response, [...kept(response), 'Connection', 'Upgrade', 'Upgrade', response.headers.upgrade ?? '']),
      );
      if (upstreamHead.length > 0) client.write(upstreamHead);
      if (head.length > 0) upstreamSocket.write(head);
      join(client, upstreamSocket, timeouts, () => {
        upstream.inFlight.count -= 1;
      });
    });
    outgoing.once('response', (response) => {
      responded = true;
      client.write(responseHead(response, [...kept(response), 'Connection', 'close']));
      response.pipe(client);
      response.once('end', () => end((response.statusCode ?? 500) >= 500 ? 'failed' : 'succeeded'));
      response.once('close', () => {
        end('failed');
        if (!response.complete) client.destroy();
      });
    });
    outgoing.once('timeout', abort);
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      if (responded) return;
      end(client.destroyed ? 'succeeded' : 'failed');
      client.off('close', abort);
      if (client.destroyed) return;
      if (error.syscall !== 'connect') return forwarding.fail('closed');
      tried.push(upstream);
      const next = choose(tried);
      if (next === undefined) forwarding.fail('unreachable');
      else attempt(next);
    });
    outgoing.end();
  };

  client.on('error', () => client.destroy());
  const first = choose(tried);
  if (first === undefined) forwarding.fail('unreachable');
  else attempt(first);
}

/** @param raw all headers, names and values in turn */
function responseHead(response: IncomingMessage, raw: readonly string[]): string {
  const headers = headerPairs(raw);
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${response.statusCode} ${response.statusMessage}`, ...lines, '', ''].join('\r\n');
}

/** Connects the two sides until one of them closes. */
function join(client: Duplex, upstream: Socket, timeouts: ForwardTimeouts, onEnd: () => void): void {
  const close = (): void => {
    client.destroy();
    upstream.destroy();
  };
  upstream.setTimeout(timeouts.idleMilliseconds, close);
  // Most often it is gone for good, and an app that does not notice would keep both connections.
  client.once('end', () => upstream.setTimeout(timeouts.halfClosedMilliseconds));
  upstream.once('error', close);
  upstream.once('close', () => {
    close();
    onEnd();
  });
  client.once('close', close);
  client.pipe(upstream);
  upstream.pipe(client);
}
