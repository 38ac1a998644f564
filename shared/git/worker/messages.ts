/** Messages from the main thread to a worker. Bytes are transferred, not copied. */
export type ToWorker =
  | { kind: 'start'; task: number; name: string; params: unknown }
  | { kind: 'input'; task: number; chunk: Uint8Array<ArrayBuffer> }
  | { kind: 'input-end'; task: number; failed: boolean }
  /** So many bytes of output were written to the client. */
  | { kind: 'acknowledge'; task: number; bytes: number }
  | { kind: 'abort'; task: number };

/** Messages from a worker to the main thread. */
export type FromWorker =
  | { kind: 'output'; task: number; chunk: Uint8Array<ArrayBuffer> }
  | { kind: 'acknowledge'; task: number; bytes: number }
  | { kind: 'result'; task: number; value: unknown }
  | { kind: 'error'; task: number; cause: ErrorCause; message: string; stack: string };

/** Which class of error a task threw. */
export type ErrorCause = 'git-fault' | 'pack-gone' | 'other';

/** Bytes that may be in flight in one direction of one task before the sender waits. */
export const windowBytes = 1024 * 1024;
