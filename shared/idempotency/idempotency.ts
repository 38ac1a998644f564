/** First answers of requests that carry an Idempotency-Key. Drivers: `postgres-idempotency.ts`, `memory-idempotency.ts`. */

export interface KeptAnswer {
  status: number;
  /** JSON text. */
  body: string;
}

export type IdempotencyClaim =
  /**
   * Go on, then `complete`, `release` or `abandon`. What the request makes is to get this id (a UUID): it is the same when
   * an earlier claim of the same request did not come that far, so that what it made is found instead of made twice.
   */
  | { state: 'claimed'; resourceId: string }
  /** Same key, same request, done before. */
  | { state: 'answered'; answer: KeptAnswer }
  /** The first request with this key is not over. */
  | { state: 'running' }
  /** The key belongs to another request. */
  | { state: 'mismatch' };

export interface KeyedRequest {
  /** Whose key it is; keys of different subjects do not meet. */
  subject: string;
  key: string;
  /** Of everything that makes two requests the same. */
  requestHash: string;
}

export interface IdempotencyKeys {
  claim(request: KeyedRequest): Promise<IdempotencyClaim>;
  complete(request: KeyedRequest, answer: KeptAnswer): Promise<void>;
  /** Gives the key back after a refusal, so that the mended request can use it. */
  release(request: KeyedRequest): Promise<void>;
  /** What became of the request is not known: it can be sent again at once, as after the death of a process. */
  abandon(request: KeyedRequest): Promise<void>;
  /** Forgets keys older than a day. Returns how many. */
  sweep(): Promise<number>;
}

/** A claim this old was left by a process that died; the next request takes it over. */
export const abandonedSeconds = 120;
export const keptSeconds = 86_400;
