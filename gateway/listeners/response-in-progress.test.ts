/** A canary: it fails when an upgrade of Node changes what response-in-progress.ts relies on. docs/private-internals.md says what to do then. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { hasBegunResponse } from './response-in-progress.ts';

const broken = `Node ${process.version} no longer has the current response in socket._httpMessage: adapt gateway/listeners/response-in-progress.ts (docs/private-internals.md)`;

const closings: (() => void)[] = [];
afterEach(() => {
  for (const close of closings.splice(0)) close();
});

/** Sends a request with a malformed body, so that it reaches `listener` and then `clientError`; resolves with what that listener sees. */
async function provokeClientError(listener: RequestListener): Promise<boolean> {
  const server = createServer(listener);
  const begun = new Promise<boolean>((resolve) => {
    server.on('clientError', (_error, socket: Duplex) => {
      resolve(hasBegunResponse(socket));
      socket.destroy();
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  closings.push(() => server.close());
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
  client.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
  server.once('request', () => setImmediate(() => client.write('no chunk size\r\n')));
  closings.push(() => client.destroy());
  return begun;
}

test('a response whose head has been sent is found', async () => {
  const begun = await provokeClientError((_request, response) => void response.writeHead(200).write('part'));
  expect(begun, broken).toBe(true);
});

test('a response that has not been begun does not count', async () => {
  expect(await provokeClientError(() => undefined)).toBe(false);
});
