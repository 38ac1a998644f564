import { createHmac } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiRunsHere } from '#test/support/api/api-runtime.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
});
afterAll(() => test?.close());

const path = '/v1/webhooks/githost';

describe('wrong signatures', () => {
  /** Sends a delivery from one address, and reports whether its body was read. */
  async function send(address: string, headers: Record<string, string>, query = '') {
    let read = false;
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
      read = true;
      controller.enqueue(new TextEncoder().encode('{}'));
      controller.close();
    };
    const body = new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 });
    const answer = await test.ask('POST', path + query, {
      address,
      body,
      headers: { 'content-type': 'application/json', ...headers },
    });
    return { ...answer, read: () => read };
  }
  const wrong = { 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${'a'.repeat(64)}` };

  it.runIf(apiRunsHere).each([
    ['no HMAC', { 'x-hub-signature-256': 'sha256=short' }],
    ['no HMAC in hex', { 'x-gitea-event': 'push', 'x-gitea-signature': 'z'.repeat(64) }],
    ['no HMAC of any version', { 'webhook-signature': 'v1,c2hvcnQ= v2,AAAA' }],
    ['another token', { 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': 'not the secret' }],
  ])('that the header alone proves wrong are refused before the body is read: %s', async (_what, headers) => {
    const { status, read } = await send('203.0.113.50', headers);
    expect([status, read()]).toEqual([401, false]);
  });

  it.runIf(apiRunsHere)(
    'are checked thirty times a minute per address; after that, deliveries are refused before the body is read',
    async () => {
      const address = '203.0.113.51';
      const statuses = new Set<number>();
      for (let count = 0; count < 30; count += 1) {
        const { status, read } = await send(address, wrong, `?app=${crypto.randomUUID()}`);
        statuses.add(status);
        expect(read()).toBe(true);
      }
      expect(statuses).toEqual(new Set([401]));
      const { status, headers, read } = await send(address, wrong);
      expect([status, read()]).toEqual([429, false]);
      expect((await send('203.0.113.52', wrong)).status).toBe(401);
      const wait = Number(headers.get('retry-after'));
      expect(wait).toBeGreaterThan(50);
      test.clock.advance(wait * 1000);
      expect((await send(address, wrong)).status).toBe(401);
    },
  );

  it('from many addresses lock out other senders, but not an address that has sent a right one', async () => {
    const app = await test.createApp(ada);
    const url = 'https://git.example.com/ada/flooded';
    await test.ask('PUT', `/v1/apps/${app.id}/git`, { as: ada, json: { url } });
    const { webhook } = (await test.ask('GET', `/v1/apps/${app.id}/git`, { as: ada })).body.data;
    const query = `?app=${app.id}`;
    const deliverFrom = (address: string) => {
      const after = crypto.randomUUID().replaceAll('-', '').padEnd(40, '0');
      const change = { ref: 'refs/heads/main', before: '0'.repeat(40), after };
      const body = JSON.stringify({ ...change, repository: { clone_url: url } });
      const headers = {
        'x-github-event': 'push',
        'x-hub-signature-256': `sha256=${createHmac('sha256', webhook?.secret ?? '')
          .update(body)
          .digest('hex')}`,
      };
      return test.ask('POST', path + query, { address, body, headers: { 'content-type': 'application/json', ...headers } });
    };
    expect((await deliverFrom('203.0.113.60')).status).toBe(200);
    for (let count = 0; count < 300; count += 1) {
      await send(`198.51.100.${count % 100}`, wrong, query);
      // The minute that begins with the first may be too short for all on a slow machine.
      if (count === 0) await sql`update event_limits set expire = expire + 3600000`.execute(test.context.db);
    }
    expect((await deliverFrom('203.0.113.61')).status).toBe(429);
    expect((await deliverFrom('203.0.113.60')).status).toBe(200);
    expect((await send('203.0.113.61', wrong)).status).toBe(401);
  });
});
