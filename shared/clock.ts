/** The time, injected so that tests can hold it. */
export interface Clock {
  now(): Date;
  /** Resolves after `milliseconds`, or rejects with the signal's reason as soon as it aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}
