/** What passes between the main thread and a worker. Bytes are transferred, not copied. */
export type ToWorker =
  | { kind: 'start'; task: number; name: string; params: unknown }
  | { kind: 'input'; task: number; chunk: Uint8Array<ArrayBuffer> }
  | { kind: 'input-end'; task: number; failed: boolean }
  /** The client took so many bytes of output. */
  | { kind: 'taken'; task: number; bytes: number }
  | { kind: 'abort'; task: number };

export type FromWorker =
  | { kind: 'output'; task: number; chunk: Uint8Array<ArrayBuffer> }
  | { kind: 'taken'; task: number; bytes: number }
  | { kind: 'result'; task: number; value: unknown }
  | { kind: 'error'; task: number; cause: ErrorCause; message: string; stack: string };

/** 'fault' is the client's, and its message is for the client; 'gone' stands for `PackGone`; 'ours' is any other. */
export type ErrorCause = 'fault' | 'gone' | 'ours';

/** Bytes that may be under way in one direction of one task before the sender waits. */
export const windowBytes = 1024 * 1024;
