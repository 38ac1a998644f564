/** Port: TLS certificates of the hosts that lead to apps. */

/** The verbs of certificates. */
export interface Certificates {
  /**
   * Asks for a certificate of the host, which is renewed until it is deleted; again is harmless. Resolves as soon as it has
   * been asked for; `readCertificate` reports what became of it.
   *
   * Kubernetes: a cert-manager Certificate and the app's listener for the host; nothing where a wildcard covers it.
   */
  ensureCertificate(host: string): Promise<void>;
  /**
   * Deletes the certificate of a host that leads to no app any more. False when there was none.
   *
   * Kubernetes: deletes Certificate, its Secret and the listener.
   */
  deleteCertificate(host: string): Promise<boolean>;
  /**
   * Undefined while there is none.
   *
   * Kubernetes: the condition `Ready` of the Certificate, its message and `notAfter`.
   */
  readCertificate(host: string): Promise<CertificateFacts | undefined>;
}

/** What is known of a certificate. */
export interface CertificateFacts {
  status: 'pending' | 'issued' | 'failed';
  /** Of the certificate that visitors are shown; undefined while there is none. */
  expiresAt: Date | undefined;
  /** Why it has not been issued; undefined unless `status` is 'failed'. */
  problem: string | undefined;
}
