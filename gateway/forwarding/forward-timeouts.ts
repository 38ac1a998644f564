export interface ForwardTimeouts {
  /** Until the upstream begins to answer, counted from the last byte in either direction. */
  readonly answerMilliseconds: number;
  /** Silence within an answer (event streams, long downloads), or within a tunnel. */
  readonly idleMilliseconds: number;
  /** How long an upstream may take to say 100 Continue before the body is sent all the same. */
  readonly continueMilliseconds: number;
}
