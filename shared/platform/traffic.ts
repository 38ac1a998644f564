/** Counts of the requests that instances have answered. A reader subtracts two readings to know what happened between. */
export interface TrafficFacts {
  requests: number;
  /** Answers of 500 and above, and requests that an instance did not answer. */
  errors: number;
  /** Sum of the times to the last byte, in milliseconds. */
  totalMilliseconds: number;
  /** Requests by that time, counted in the buckets of latencies.ts; empty ones at the end may be left out. */
  latencies: readonly number[];
  /** Whether a visitor was given an answer below 500 to GET /. Left out: not known. */
  answersRoot?: boolean;
}

/** The traffic of one release. */
export interface ReleaseTraffic extends TrafficFacts {
  releaseVersion: number;
  /** When the last request ended, in milliseconds since 1970. Left out before the first. */
  lastRequestAt?: number;
}
