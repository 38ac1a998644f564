/** Port: first answers of requests with an Idempotency-Key. Drivers: `postgres-idempotency.ts`, `fake-idempotency.ts`. */

import { secondsPerDay } from '#shared/durations.ts';

/** The stored response of the first request with a key. */
export interface KeptAnswer {
  status: number;
  /** JSON text. */
  body: string;
}

/** The result of claiming a key. */
export type IdempotencyClaim =
  /**
   * Handle the request, then call `complete`, `release` or `abandon`. The created resource must get this id (a UUID). A later
   * claim of the same unfinished request gets the same id, so that the resource is found instead of created twice.
   */
  | { state: 'claimed'; resourceId: string }
  /** The same request was answered before. */
  | { state: 'answered'; answer: KeptAnswer }
  /** The first request with this key is still being handled. */
  | { state: 'running' }
  /** The key was used for a different request. */
  | { state: 'mismatch' };

/** A request with its Idempotency-Key. */
export interface KeyedRequest {
  /** The owner of the key. Subjects do not share keys. */
  subject: string;
  key: string;
  /** Hash of everything in which two equal requests must agree. */
  requestHash: string;
}

export interface IdempotencyKeys {
  /** Atomic: one of several concurrent claims gets 'claimed'. */
  claim(request: KeyedRequest): Promise<IdempotencyClaim>;
  /** Stores the answer for a day, unreadable to whoever reads the store: it may hold a secret that is shown once. */
  complete(request: KeyedRequest, answer: KeptAnswer): Promise<void>;
  /** Frees the key after the request was refused, so that the corrected request can use it. */
  release(request: KeyedRequest): Promise<void>;
  /** The outcome of the request is unknown: it may be repeated at once, as after the crash of a process. */
  abandon(request: KeyedRequest): Promise<void>;
  /** Removes keys older than a day. @returns how many */
  sweep(): Promise<number>;
}

/** A claim of this age belongs to a process that crashed; the next request takes it over. */
export const abandonedSeconds = 120;
/** How long answers are stored. */
export const keptSeconds = secondsPerDay;
