import type { MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { ApiEnv } from '#api/api-env.ts';
import { bodyTooLarge } from '#api/refusal.ts';

/** Refuses a body above `bytes`, be its length announced or sent in chunks. */
export function limitBody(bytes: number): MiddlewareHandler<ApiEnv> {
  return bodyLimit({
    maxSize: bytes,
    onError: () => {
      throw bodyTooLarge(bytes);
    },
  });
}
