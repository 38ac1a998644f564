/** The SSH part of shared/limits.ts, as numbers a test may lower. */
export interface SshLimits {
  /** From the TCP connection to the accepted signature. */
  readonly loginGraceSeconds: number;
  /** Refused authentication requests a connection may make, the customary first `none` not counted. */
  readonly authAttempts: number;
  readonly unauthenticatedSoftCap: number;
  /** Probability that a lingering connection is dropped at the soft cap; rises to 1 at the hard cap. */
  readonly unauthenticatedDropRatio: number;
  readonly unauthenticatedHardCap: number;
  readonly keepaliveSeconds: number;
  readonly keepaliveMisses: number;
  /** Of all kinds. */
  readonly connections: number;
  readonly sessionsPerConnection: number;
  readonly idleSeconds: number;
  /** Penalty points of a source at which its failed logins are answered late, and its connections refused. */
  readonly slowFromPoints: number;
  readonly refuseFromPoints: number;
}
