/** Port: TLS certificates of hosts that lead to apps. */

export interface Certificates {
  /** The certificate of a host that leads to an app. Undefined while there is none. */
  readCertificate(host: string): Promise<{ expiresAt: Date } | undefined>;
}
