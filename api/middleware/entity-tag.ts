import type { MiddlewareHandler } from 'hono';
import type { ApiContext, ApiEnv } from '#api/http/api-env.ts';

/** An ETag on what was read as JSON, and 304 for who has it already. Streams and public documents pass through. */
export function entityTag(): MiddlewareHandler<ApiEnv> {
  return async function tagAnswer(c, next) {
    if (c.req.method !== 'GET' && c.req.method !== 'HEAD') return next();
    const readText = keepJsonText(c);
    await next();
    const text = readText();
    if (text === undefined || c.res.status !== 200) return;
    const tag = tagOf(text);
    const { headers } = c.res;
    if (headers.get('cache-control') === null) headers.set('cache-control', 'private, no-cache');
    headers.set('vary', 'Authorization, Accept');
    headers.set('etag', tag);
    if (!matches(c.req.header('if-none-match'), tag)) return;
    headers.delete('content-type');
    headers.delete('content-length');
    c.res = undefined;
    c.res = new Response(null, { status: 304, headers });
  };
}

/** The text that `c.json` answers with, kept as it is made: of a finished answer it could be had as a stream only. */
function keepJsonText(c: ApiContext): () => string | undefined {
  let text: string | undefined;
  const answerJson = (object: unknown, status?: number, headers?: Record<string, string>): Response => {
    text = JSON.stringify(object);
    return c.body(text, status as 200, { 'content-type': 'application/json', ...headers });
  };
  c.json = answerJson as typeof c.json;
  return () => text;
}

/**
 * 64 bits of the text, in two lanes of 32 that are multiplied and mixed at the end (MurmurHash3's finalizer). Quick and at
 * once, where a digest of Web Crypto waits for a thread; and nothing secret rests on it: it tells who was shown a body
 * whether they have seen it, and no tag of theirs reaches anybody else.
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

function matches(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((each) => each.trim() === '*' || each.trim().replace(/^W\//, '') === tag);
}
