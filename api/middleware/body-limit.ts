import type { MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { ApiEnv } from '#api/http/api-env.ts';
import { accessOf } from '#api/http/public-routes.ts';
import { bodyTooLarge } from '#api/http/refusal.ts';
import { AppError } from '#shared/errors.ts';

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

/** How a body is read. */
export interface BodyReading {
  /** Largest body. */
  bytes: number;
  /** How long it may take to arrive. */
  seconds: number;
  /** Called before so many bytes are kept: with the announced length, or with that of each chunk. It may throw. */
  onBytes(count: number): void;
}

/**
 * The bytes of the body as they came.
 * @throws StatusError 413 as soon as there are more than `bytes`; AppError `validation_failed` when it takes too long
 */
export async function readBody(request: Request, { bytes, seconds, onBytes }: BodyReading): Promise<Uint8Array<ArrayBuffer>> {
  const header = request.headers.get('content-length');
  const announced = header === null ? undefined : Number(header);
  if ((announced ?? 0) > bytes) throw bodyTooLarge(bytes);
  if (announced !== undefined) onBytes(announced);
  const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = request.body?.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    reader?.cancel().catch(() => undefined);
  }, seconds * 1000);
  try {
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
      length += next.value.length;
      if (length > (announced ?? bytes)) throw bodyTooLarge(bytes);
      if (announced === undefined) onBytes(next.value.length);
      chunks.push(next.value);
    }
  } finally {
    clearTimeout(timer);
    reader?.releaseLock();
  }
  if (late) throw new AppError('validation_failed', `The body took more than ${seconds} s to arrive. Send it again.`);
  const body = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  return body;
}
