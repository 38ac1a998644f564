import { Hono } from 'hono';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ApiEnv } from '#api/http/api-env.ts';
import { type StreamEvent, streamEvents, wantsEvents } from '#api/http/event-stream.ts';
import { toAppError, toRefusal } from '#api/http/refusal.ts';
import { createStreamLimits } from '#api/http/stream-limits.ts';
import { millisecondsPerHour } from '#shared/durations.ts';
import { AppError } from '#shared/errors.ts';
import type { UserId } from '#shared/ids.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

type Open = (signal: AbortSignal) => Promise<AsyncIterable<StreamEvent>>;

let streams = createStreamLimits();
beforeEach(() => {
  streams = createStreamLimits({ ofUser: 3, all: 100 });
});

function request(open: Open, method = 'GET', check: () => Promise<unknown> = async () => undefined) {
  const api = new Hono<ApiEnv>();
  api.use(async (c, next) => {
    c.set('caller', { userId: 'ada' as UserId, email: 'ada@example.com' });
    c.set('refuse', (error) => toRefusal(toAppError(error), 'req_1', new Date(0)));
    await next();
  });
  api.get('/', (c) => streamEvents(c, { streams, open, check }));
  api.onError((error, c) => c.json(c.get('refuse')(error).body, 409));
  return api.request('/', { method });
}

async function* eventsOf(...events: StreamEvent[]): AsyncGenerator<StreamEvent> {
  yield* events;
}

/** Has no event, and ends when it is aborted. */
async function* silence(signal: AbortSignal): AsyncGenerator<StreamEvent> {
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
  yield* [];
}

const openSilence: Open = async (signal) => silence(signal);

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe('an event stream', () => {
  it('sends each event as one line of JSON, with its id and type, and ends', async () => {
    const response = await request(async () => eventsOf({ id: '7', data: 'a\nb' }, { event: 'end', data: { done: true } }));
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const blocks = (await response.text()).split('\n\n').filter((block) => block !== '' && !block.startsWith(':'));
    expect(blocks.map((block) => block.split('\n').toSorted())).toEqual([
      ['data: "a\\nb"', 'id: 7'],
      ['data: {"done":true}', 'event: end'],
    ]);
  });

  it('sends its first bytes at once, and is not cached or buffered by proxies', async () => {
    const response = await request(async (signal) => silence(signal));
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toMatch(/^:.*\n\n$/);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    await reader?.cancel();
  });

  it('sends the error envelope when its source fails, without internal messages', async () => {
    async function* broken(): AsyncGenerator<StreamEvent> {
      yield { id: '1', data: 1 };
      throw new Error('canary-of-the-inside');
    }
    const text = await (await request(async () => broken())).text();
    expect(text).toContain('event: error\ndata: {"error":{"code":"internal"');
    expect(text.match(/event: error/g)).toHaveLength(1);
    expect(text).not.toContain('canary');
  });

  it('that cannot be opened is refused with a status', async () => {
    const response = await request(() => Promise.reject(new AppError('conflict', 'Not now.')));
    expect(response.status).toBe(409);
    expect(await response.json()).toMatchObject({ error: { code: 'conflict', message: 'Not now.' } });
  });

  it('sends a comment every 15 seconds on an idle connection', async () => {
    vi.useFakeTimers();
    const response = await request(async (signal) => silence(signal));
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    await reader?.read();
    const next = reader?.read();
    await vi.advanceTimersByTimeAsync(15_000);
    expect((await next)?.value).toMatch(/^:.*\n\n$/);
    await reader?.cancel();
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('stops its source when the client goes away', async () => {
    let stopped: AbortSignal | undefined;
    const response = await request(async (signal) => {
      stopped = signal;
      return silence(signal);
    });
    const reader = response.body?.getReader();
    await reader?.read();
    expect(stopped?.aborted).toBe(false);
    await reader?.cancel();
    expect(stopped?.aborted).toBe(true);
  });

  it('takes no more from its source than the client reads', async () => {
    let taken = 0;
    async function* endless(): AsyncGenerator<StreamEvent> {
      for (;;) yield { data: (taken += 1) };
    }
    const response = await request(async () => endless());
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(taken).toBeLessThan(10);
    await response.body?.cancel();
  });

  it('ends within 30 seconds when the caller may no longer read, and not for an outage', async () => {
    vi.useFakeTimers();
    let failure: Error = new Error('the database is away');
    let stopped: AbortSignal | undefined;
    const open: Open = async (signal) => {
      stopped = signal;
      return silence(signal);
    };
    const response = await request(open, 'GET', () => Promise.reject(failure));
    const text = response.text();
    await vi.advanceTimersByTimeAsync(30_000);
    expect(stopped?.aborted).toBe(false);
    failure = new AppError('unauthorized', 'The session has ended. Log in again.');
    await vi.advanceTimersByTimeAsync(30_000);
    expect(stopped?.aborted).toBe(true);
    expect(await text).not.toContain('error');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is refused to a user who has too many, until one of them ends, however it ends', async () => {
    const broken: Open = () => Promise.reject(new AppError('conflict', 'Not now.'));
    for (let time = 0; time < 5; time += 1) {
      await request(broken);
      await request(openSilence, 'HEAD');
      await (await request(async () => eventsOf({ data: 1 }))).text();
    }
    const open = [await request(openSilence), await request(openSilence), await request(openSilence)];
    const refused = await request(openSilence);
    expect(await refused.json()).toMatchObject({ error: { code: 'rate_limited' } });
    await open[0]?.body?.cancel();
    await expect.poll(async () => (await request(openSilence)).headers.get('content-type')).toBe('text/event-stream');
    const full = createStreamLimits({ ofUser: 3, all: 1 });
    full.take('ada');
    expect(() => full.take('bob')).toThrow('Too many open event streams on this platform.');
  });

  it('ends after an hour, also when nobody reads', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((milliseconds) => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), milliseconds);
      return controller.signal;
    });
    await request(async (signal) => silence(signal));
    await vi.advanceTimersByTimeAsync(millisecondsPerHour);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('answers HEAD without a body, and stops its source at once', async () => {
    vi.useFakeTimers();
    let stopped: AbortSignal | undefined;
    const response = await request(async (signal) => {
      stopped = signal;
      return silence(signal);
    }, 'HEAD');
    expect([response.status, response.body]).toEqual([200, null]);
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    expect(stopped?.aborted).toBe(true);
    await vi.advanceTimersByTimeAsync(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});

it.each([
  ['text/event-stream', true],
  ['application/json, Text/Event-Stream;q=0.9', true],
  ['application/json', false],
  ['*/*', false],
  [undefined, false],
])('Accept %s asks for events: %s', async (accept, wanted) => {
  const api = new Hono<ApiEnv>().get('/', (c) => c.json(wantsEvents(c)));
  const response = await api.request('/', { headers: omitUndefined({ accept }) });
  expect(await response.json()).toBe(wanted);
});
