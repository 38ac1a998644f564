import type { SecureContext } from 'node:tls';

/** Port: issues TLS certificates. The driver is a local authority; ACME would be another. */
export interface Certificates {
  /**
   * The certificate for clients that connect to the first of `hosts`; it is valid for all of them. Issued at the first call,
   * and again before it expires. To be called only for hosts that the gateway serves.
   * @param hosts lower-case names or addresses, without port and brackets
   */
  certificateFor(hosts: readonly [string, ...string[]]): Promise<Certificate>;
  /** Deletes what was made for a host, with its key. False when there was nothing. */
  deleteCertificate(host: string): Promise<boolean>;
}

/** A certificate with its key, ready for use. */
export interface Certificate {
  /** PEM, the host's own certificate first. */
  readonly chain: string;
  /** PEM. */
  readonly key: string;
  readonly expiresAt: Date;
  readonly context: SecureContext;
}
