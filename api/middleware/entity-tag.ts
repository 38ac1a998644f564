import type { MiddlewareHandler } from 'hono';
import { etag } from 'hono/etag';
import type { ApiContext, ApiEnv } from '#api/http/api-env.ts';

/** Adds an ETag to each JSON answer of a read, and answers 304 to a client that has it already. Streams and public documents have none. */
export function entityTag(): MiddlewareHandler<ApiEnv> {
  const answerConditionally = etag();
  return async function tagAnswer(c, next) {
    if (c.req.method !== 'GET' && c.req.method !== 'HEAD') return next();
    const readText = retainJsonText(c);
    await next();
    const text = readText();
    if (text === undefined || c.res.status !== 200) return;
    const { headers } = c.res;
    if (headers.get('cache-control') === null) headers.set('cache-control', 'private, no-cache');
    headers.set('vary', 'Authorization, Accept');
    headers.set('etag', tagOf(text));
    await answerConditionally(c, async () => undefined);
  };
}

/** Retains the text that `c.json` answers with: a finished answer has it as a stream only. */
function retainJsonText(c: ApiContext): () => string | undefined {
  let text: string | undefined;
  const answerJson = (object: unknown, status?: number, headers?: Record<string, string>): Response => {
    text = JSON.stringify(object);
    return c.body(text, status as 200, { 'content-type': 'application/json', ...headers });
  };
  c.json = answerJson as typeof c.json;
  return () => text;
}

/**
 * A hash of 64 bits, in two lanes of 32 that are multiplied and mixed at the end (MurmurHash3's finalizer). The digest of
 * hono's etag() reads a copy of the body as a stream and waits for a thread, which costs 25 to 60 µs more per read. The hash
 * need not be secure: it only tells a client whether the body is the one that it was sent before.
 */
function tagOf(text: string): string {
  let [high, low] = [0xdeadbeef ^ text.length, 0x41c6ce57];
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    high = Math.imul(high ^ unit, 0x9e3779b1);
    low = Math.imul(low ^ unit, 0x5f356495);
  }
  return `"${hexOf(mix(high) ^ low)}${hexOf(mix(low) ^ high)}"`;
}

function mix(lane: number): number {
  const once = Math.imul(lane ^ (lane >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return twice ^ (twice >>> 16);
}

function hexOf(lane: number): string {
  return (lane >>> 0).toString(16).padStart(8, '0');
}
