import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createBodyBudget } from '#api/routes/webhooks/body-budget.ts';
import { limits } from '#shared/limits.ts';
import { createTestApi, type TestApi, testWebhookSecret } from '#test/support/api/test-api.ts';

describe('the memory of deliveries', () => {
  const create = () => createBodyBudget({ all: 100, ofSource: 50, unproven: 60 });
  const refused = expect.objectContaining({ code: 'rate_limited', retryAfterSeconds: 5 }) as Error;

  it('is limited for each source, and free again when a body is released', () => {
    const budget = create();
    const first = budget.open('a', true);
    first.add(30);
    first.add(20);
    expect(() => budget.open('a', true).add(1)).toThrow(refused);
    budget.open('b', true).add(50);
    first.release();
    first.release();
    budget.open('a', true).add(50);
    expect(() => budget.open('c', true).add(1)).toThrow(refused);
  });

  it('is limited for all unproven sources together, which leaves room for proven ones', () => {
    const budget = create();
    budget.open('a', false).add(40);
    budget.open('b', false).add(20);
    expect(() => budget.open('c', false).add(1)).toThrow(refused);
    budget.open('host', true).add(40);
  });

  it('does not count what was refused', () => {
    const budget = create();
    const body = budget.open('a', false);
    expect(() => body.add(51)).toThrow(refused);
    body.add(50);
    body.release();
    budget.open('a', false).add(50);
  });
});

describe('deliveries whose bodies never end', () => {
  let test: TestApi;
  beforeAll(async () => {
    test = await createTestApi();
  });
  afterAll(() => test?.close());

  const wrong = { 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${'a'.repeat(64)}` };
  async function post(
    address: string,
    headers: Record<string, string>,
    body: string | ReadableStream<Uint8Array>,
  ): Promise<Response> {
    const all = { 'content-type': 'application/json', 'x-test-address': address, ...headers };
    return test.api.request('/v1/webhooks/githost', { method: 'POST', headers: all, body, duplex: 'half' } as RequestInit);
  }
  const endless = (): ReadableStream<Uint8Array> =>
    new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(1)) });

  it('take limited room, are given up after a minute, and do not keep a proven git host out', async () => {
    const body = JSON.stringify({ zen: 'hello' });
    const signature = createHmac('sha256', testWebhookSecret).update(body).digest('hex');
    const deliver = () => post('203.0.113.200', { 'x-github-event': 'ping', 'x-hub-signature-256': `sha256=${signature}` }, body);
    expect((await deliver()).status).toBe(200);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const size = { ...wrong, 'content-length': String(limits.http.webhookBytes) };
      const open = [1, 2, 3, 4, 5, 6].map((host) => post(`203.0.113.${host}`, size, endless()));
      const first = await Promise.race(open);
      expect([first.status, first.headers.get('retry-after')]).toEqual([429, '5']);
      expect((await post('203.0.113.9', size, endless())).status).toBe(429);
      expect((await deliver()).status).toBe(200);
      await vi.advanceTimersByTimeAsync(60_000);
      const statuses = (await Promise.all(open)).map(({ status }) => status);
      expect(new Set(statuses)).toEqual(new Set([422, 429]));
    } finally {
      vi.useRealTimers();
    }
    expect((await post('203.0.113.10', wrong, 'x')).status).toBe(401);
  });
});
