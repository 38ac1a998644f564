import { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/**
 * Whether part of a response has been sent on the connection, so that no other response may follow it. Node hands a
 * `clientError` listener the socket only: the response is found by an undocumented property (docs/private-internals.md).
 */
export function hasBegunResponse(socket: Duplex): boolean {
  const { _httpMessage: response } = socket as Duplex & { readonly _httpMessage?: unknown };
  return response instanceof ServerResponse && response.headersSent;
}
