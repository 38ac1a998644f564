import { type ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { startTestGateway } from './testing/start-test-gateway.ts';

describe('stopping and starting again', () => {
  it('closes its ports at once, completes requests in flight, and starts again with all routes', async () => {
    const first = await startTestGateway();
    let open: ServerResponse | undefined;
    const app = await first.startApp((incoming, response) => {
      if (incoming.url === '/slow') open = response;
      else response.end('quick');
    });
    const slow = first.fetch(app.host, { path: '/slow' });
    await expect.poll(() => open).toBeDefined();
    await first.gateway.stop(10);
    await expect(first.fetch(app.host)).rejects.toThrow('ECONNREFUSED');
    const second = await startTestGateway({}, first.dataDir);
    expect(await second.fetch(app.host)).toMatchObject({ status: 200, body: 'quick' });
    open?.end('whole');
    expect(await slow).toMatchObject({ status: 200, body: 'whole' });
    await first.gateway.drained;
    await second.stop();
    await first.stop();
  });
});
