/** The SSH part of shared/limits.ts, with numbers that a test may lower. */
export interface SshLimits {
  /** From the TCP connection to the accepted signature. */
  readonly loginGraceSeconds: number;
  /** Refused authentication requests per connection, not counting the usual first `none`. */
  readonly authAttempts: number;
  /** Connections that have not logged in, from which on slow ones are dropped. */
  readonly unauthenticatedSoftCap: number;
  /** Probability that a slow connection is dropped at the soft cap; it rises to 1 at the hard cap. */
  readonly unauthenticatedDropRatio: number;
  readonly unauthenticatedHardCap: number;
  /** Time between keepalive requests; after `keepaliveMisses` unanswered ones the connection is closed. */
  readonly keepaliveSeconds: number;
  readonly keepaliveMisses: number;
  /** Open connections, logged in or not. */
  readonly connections: number;
  readonly sessionsPerConnection: number;
  /** How long a client may let a read or write wait, or stay connected without a session. */
  readonly idleSeconds: number;
  /** Penalty points of a source from which on its failed logins are answered with a delay. */
  readonly slowFromPoints: number;
  /** Penalty points of a source from which on its connections are refused. */
  readonly refuseFromPoints: number;
}
