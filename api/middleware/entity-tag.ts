import type { MiddlewareHandler } from 'hono';
import type { ApiEnv } from '#api/api-env.ts';

/** An ETag on what was read as JSON, and 304 for who has it already. Streams and public documents pass through. */
export function entityTag(): MiddlewareHandler<ApiEnv> {
  return async function tagAnswer(c, next) {
    await next();
    if (c.req.method !== 'GET' && c.req.method !== 'HEAD') return;
    if (c.res.status !== 200 || !c.res.headers.get('content-type')?.startsWith('application/json')) return;
    const digest = await crypto.subtle.digest('SHA-256', await c.res.clone().arrayBuffer());
    const tag = `"${new Uint8Array(digest, 0, 16).toBase64({ alphabet: 'base64url', omitPadding: true })}"`;
    if (c.res.headers.get('cache-control') === null) c.res.headers.set('cache-control', 'private, no-cache');
    c.res.headers.set('vary', 'Authorization, Accept');
    c.res.headers.set('etag', tag);
    if (!matches(c.req.header('if-none-match'), tag)) return;
    const { headers } = c.res;
    headers.delete('content-type');
    headers.delete('content-length');
    c.res = undefined;
    c.res = new Response(null, { status: 304, headers });
  };
}

function matches(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((each) => each.trim() === '*' || each.trim().replace(/^W\//, '') === tag);
}
