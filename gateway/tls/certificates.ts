import type { SecureContext } from 'node:tls';

/** Where certificates come from: the local authority now; an ACME account can stand beside it. */
export interface Certificates {
  /**
   * What to present to a client that asks for the first of `hosts`; it is good for all of them. Made when first asked
   * for, and again before it expires. Only ever called for hosts that are served.
   * @param hosts lower-case names or addresses, without port and brackets
   */
  certificateFor(hosts: readonly [string, ...string[]]): Promise<Certificate>;
}

export interface Certificate {
  /** PEM, the leaf first. */
  readonly chain: string;
  /** PEM. */
  readonly key: string;
  readonly expiresAt: Date;
  readonly context: SecureContext;
}
