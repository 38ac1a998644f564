import { type Agent, request as httpRequest } from 'node:http';
import { AppError, type ErrorCode, errorCodes } from '#shared/errors.ts';
import { reachableSocketPath } from '#shared/net/unix-socket.ts';

/** A request to the gateway's control socket. */
export interface GatewayCall {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Keeps connections; without one the call has a connection of its own. */
  readonly agent?: Agent;
}

const timeoutMilliseconds = 60_000;

/**
 * Sends one request to the gateway's control socket.
 * @returns the JSON of the response
 * @throws AppError for an error response; a system error when no gateway is running
 */
export async function callGateway(controlSocket: string, call: GatewayCall): Promise<unknown> {
  const { status, text } = await exchange(controlSocket, call);
  const response: unknown = JSON.parse(text);
  if (status < 400) return response;
  const { code, message } = (response as { error: { code: ErrorCode; message: string } }).error;
  throw new AppError(errorCodes.includes(code) ? code : 'internal', message);
}

function exchange(
  controlSocket: string,
  { method, path, body, agent }: GatewayCall,
): Promise<{ readonly status: number; readonly text: string }> {
  const payload = body === undefined ? '' : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({
      socketPath: reachableSocketPath(controlSocket),
      method,
      path,
      agent: agent ?? false,
      timeout: timeoutMilliseconds,
      headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(payload) },
    });
    outgoing.once('response', (incoming) => {
      let text = '';
      incoming.setEncoding('utf8');
      incoming.on('data', (chunk: string) => {
        text += chunk;
      });
      incoming.once('end', () => resolve({ status: incoming.statusCode ?? 500, text }));
      incoming.once('error', reject);
    });
    outgoing.once('timeout', () => outgoing.destroy(new Error('The gateway did not answer within 60 s.')));
    outgoing.once('error', reject);
    outgoing.end(payload);
  });
}
