/** First answers of requests that carry an Idempotency-Key. Drivers: `postgres-idempotency.ts`, `memory-idempotency.ts`. */

export interface KeptAnswer {
  status: number;
  /** JSON text. */
  body: string;
}

export type IdempotencyClaim =
  /** Nobody used the key: go on, then `complete` or `release`. */
  | { state: 'claimed' }
  /** Same key, same request, done before. */
  | { state: 'answered'; answer: KeptAnswer }
  /** The first request with this key is not over. */
  | { state: 'running' }
  /** The key belongs to another request. */
  | { state: 'mismatch' };

export interface IdempotencyKeys {
  /**
   * @param subject whose key it is; keys of different subjects do not meet
   * @param requestHash of everything that makes two requests the same
   */
  claim(subject: string, key: string, requestHash: string): Promise<IdempotencyClaim>;
  complete(subject: string, key: string, answer: KeptAnswer): Promise<void>;
  /** Gives the key back after a refusal, so that the mended request can use it. */
  release(subject: string, key: string): Promise<void>;
  /** Forgets keys older than a day. Returns how many. */
  sweep(): Promise<number>;
}

/** A claim this old was left by a process that died; the next request takes it over. */
export const abandonedSeconds = 120;
export const keptSeconds = 86_400;
