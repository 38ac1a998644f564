/** What the API remembers from one request to the next. It is bounded, and what is lost with the process is learnt again. */
export interface ApiMemory {
  /** Calls by user that are not counted yet; see `createCallLimits`. */
  readonly uncountedCalls: Map<string, number>;
  /** Senders that have sent a right signature; see `createFailedDeliveries`. */
  readonly provenSenders: Set<string>;
}

/** An empty memory. A process that creates more than one API, as workerd does for each request, gives all of them the same. */
export function createApiMemory(): ApiMemory {
  return { uncountedCalls: new Map(), provenSenders: new Set() };
}
