import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { beginAttempt, countRequest, type Upstream } from '../routes/upstream.ts';
import type { Forwarding } from './forward-request.ts';
import { answerHeaders } from './request-plan.ts';

/**
 * Passes a request to upgrade on and, when the upstream agrees, every byte both ways until one side ends. An upstream
 * that does not agree has its answer passed back. The tunnel counts as in flight all the while, as a request once the
 * upstream has answered.
 * @param head what the client sent behind its request already
 */
export function forwardUpgrade(
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
  forwarding: Omit<Forwarding, 'expectsContinue' | 'kept'>,
): void {
  const { plan, choose, timeouts } = forwarding;
  const tried: Upstream[] = [];

  const attempt = (upstream: Upstream): void => {
    const startedAt = performance.now();
    const end = beginAttempt(upstream);
    let answered = false;
    const outgoing = httpRequest({
      ...upstream.address,
      method: request.method ?? 'GET',
      path: plan.path,
      headers: plan.headers,
      agent: false,
      timeout: timeouts.answerMilliseconds,
      setDefaultHeaders: false,
    });
    const leave = (): void => {
      outgoing.destroy();
    };
    client.once('close', leave);

    outgoing.once('upgrade', (answer, upstreamSocket, upstreamHead) => {
      answered = true;
      countRequest(upstream, false, startedAt);
      client.write(responseHead(answer, ['Connection', 'Upgrade', 'Upgrade', answer.headers.upgrade ?? '']));
      if (upstreamHead.length > 0) client.write(upstreamHead);
      if (head.length > 0) upstreamSocket.write(head);
      connect(client, upstreamSocket, timeouts.idleMilliseconds, () => {
        upstream.inFlight.count -= 1;
      });
    });
    outgoing.once('response', (answer) => {
      answered = true;
      client.write(responseHead(answer, ['Connection', 'close']));
      answer.pipe(client);
      answer.once('end', () => end((answer.statusCode ?? 500) >= 500 ? 'failed' : 'good'));
      answer.once('close', () => {
        end('failed');
        if (!answer.complete) client.destroy();
      });
    });
    outgoing.once('timeout', leave);
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      if (answered) return;
      end(client.destroyed ? 'good' : 'failed');
      client.off('close', leave);
      if (client.destroyed) return;
      if (error.syscall !== 'connect') return forwarding.fail('broken');
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

function responseHead(answer: IncomingMessage, connectionHeaders: readonly string[]): string {
  const headers = [...answerHeaders(answer.rawHeaders), ...connectionHeaders];
  const lines = headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1] ?? ''}`] : []));
  return [`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}`, ...lines, '', ''].join('\r\n');
}

function connect(client: Duplex, upstream: Socket, idleMilliseconds: number, ended: () => void): void {
  const close = (): void => {
    client.destroy();
    upstream.destroy();
  };
  upstream.setTimeout(idleMilliseconds, close);
  upstream.once('error', close);
  upstream.once('close', () => {
    close();
    ended();
  });
  client.once('close', close);
  client.pipe(upstream);
  upstream.pipe(client);
}
