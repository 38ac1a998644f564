import { getPath } from 'hono/utils/url';

/** A UUID as a whole segment, but not where a name from git stands. */
const uuidSegment = /(?<!\/(?:commits|tree|compare))\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=\/|$)/gi;

/**
 * The path that routes are matched by. Each route is available under /v1 and /api/v1, and is listed once. Doubled slashes, a
 * slash at the end and upper-case UUIDs name the same resource.
 */
export function routedPath(request: Request): string {
  let path = getPath(request);
  if (path.includes('//')) path = path.replace(/\/{2,}/g, '/');
  if (path.endsWith('/')) path = path.slice(0, -1);
  if (path.startsWith('/api/v1/')) path = path.slice('/api'.length);
  return /[A-F]/.test(path) ? path.replace(uuidSegment, (segment) => segment.toLowerCase()) : path;
}
