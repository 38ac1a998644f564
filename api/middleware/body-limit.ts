import type { MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { ApiEnv } from '#api/http/api-env.ts';
import { accessOf } from '#api/http/public-routes.ts';
import { bodyTooLarge } from '#api/http/refusal.ts';

/** Largest bodies in bytes. */
export interface BodyLimits {
  bodyBytes: number;
  /** Of requests without a token: an email address and a password. */
  publicBodyBytes: number;
}

/** Refuses a larger body, whether its length is announced or not. Routes with a signature call `readBody` instead. */
export function limitBody({ bodyBytes, publicBodyBytes }: BodyLimits): MiddlewareHandler<ApiEnv> {
  const refuse = refuseAbove(bodyBytes);
  const refusePublic = refuseAbove(publicBodyBytes);
  return async function refuseLargeBody(c, next) {
    // A read has no body. Looking for one would create a whole Request object.
    if (c.req.method === 'GET' || c.req.method === 'HEAD') return next();
    switch (accessOf(c)) {
      case 'signed':
      case 'unlimited':
      case 'noRoute':
        return next();
      case 'perAddress':
      case 'password':
      case 'ofBuild':
        return refusePublic(c, next);
      case 'person':
      case 'token':
        return refuse(c, next);
    }
  };
}

function refuseAbove(maxSize: number): MiddlewareHandler<ApiEnv> {
  return bodyLimit({
    maxSize,
    onError: () => {
      throw bodyTooLarge(maxSize);
    },
  });
}

/** The bytes of the body as they came. @throws StatusError 413 as soon as there are more than `bytes` */
export async function readBody(request: Request, bytes: number): Promise<Uint8Array<ArrayBuffer>> {
  if (Number(request.headers.get('content-length') ?? 0) > bytes) throw bodyTooLarge(bytes);
  const chunks: Uint8Array[] = [];
  let length = 0;
  const stream: AsyncIterable<Uint8Array> | null = request.body;
  for await (const chunk of stream ?? []) {
    length += chunk.length;
    if (length > bytes) throw bodyTooLarge(bytes);
    chunks.push(chunk);
  }
  const body = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  return body;
}
