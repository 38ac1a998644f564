import type { SecureContext } from 'node:tls';

/** Port: issues TLS certificates. The driver is a local authority; ACME would be another. */
export interface CertificateIssuer {
  /**
   * The certificate for clients that connect to the first of `hosts`; it is valid for all of them. Issued at the first call,
   * and again before it expires. To be called only for hosts that the gateway serves.
   * @param hosts lower-case names or addresses, without port and brackets
   */
  certificateFor(hosts: readonly [string, ...string[]]): Promise<Certificate>;
  /**
   * Deletes the certificate of a host and its key. Resolves with whether there was one.
   * @param host as for `certificateFor`; checked by the caller
   */
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
