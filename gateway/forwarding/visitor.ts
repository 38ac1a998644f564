import { bucketOfAddress, visitorBuckets } from '#shared/routing/visitor-buckets.ts';

/**
 * The cookie that holds a visitor's bucket, so that a visitor whose address changes stays with one release and one instance. It
 * holds nothing else, and only the gateway sees it.
 */
export const visitorCookie = 'paas_visitor';

/** Who a request is from, as far as its routing needs to know. */
export interface Visitor {
  readonly bucket: number;
  /** The value of a Set-Cookie header. Undefined when the visitor has the cookie. */
  readonly newCookie: string | undefined;
}

/** @param cookie the bucket in the request's cookie; undefined without one */
export function identifyVisitor(cookie: number | undefined, remoteAddress: string, encrypted: boolean): Visitor {
  if (cookie !== undefined) return { bucket: cookie, newCookie: undefined };
  const bucket = bucketOfAddress(remoteAddress);
  return { bucket, newCookie: `${visitorCookie}=${bucket}; Path=/; HttpOnly; SameSite=Lax${encrypted ? '; Secure' : ''}` };
}

/** Takes the gateway's cookie out of a Cookie header. `rest` is '' when it held nothing else. */
export function takeVisitorCookie(header: string): { rest: string; bucket: number | undefined } {
  if (!header.includes(visitorCookie)) return { rest: header, bucket: undefined };
  let bucket: number | undefined;
  const rest = header.split(/; ?/).filter((pair) => {
    if (!pair.startsWith(`${visitorCookie}=`)) return true;
    const value = pair.slice(visitorCookie.length + 1);
    if (/^\d{1,4}$/.test(value) && Number(value) < visitorBuckets) bucket = Number(value);
    return false;
  });
  return { rest: rest.join('; '), bucket };
}

/**
 * Adds the cookie to the headers of a page. Nothing else gets it: not assets, nor answers of APIs, nor pages that shared caches may
 * store, which would hand one visitor's cookie to others.
 * @param headers names and values in turn
 */
export function addVisitorCookie(headers: string[], newCookie: string | undefined): string[] {
  if (newCookie === undefined) return headers;
  let isPage = false;
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index]?.toLowerCase();
    const value = headers[index + 1] ?? '';
    if (name === 'content-type') isPage = /^text\/html\b/i.test(value);
    if (name === 'cache-control' && /\b(public|s-maxage)\b/i.test(value)) return headers;
  }
  return isPage ? [...headers, 'Set-Cookie', newCookie] : headers;
}
