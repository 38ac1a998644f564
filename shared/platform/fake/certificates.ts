import type { CertificateFacts, Certificates } from '#shared/platform/certificates.ts';

/** Certificates in memory, which a test can let fail. */
export interface FakeCertificates extends Certificates {
  /** Hosts whose certificate was asked for and not deleted. */
  readonly hosts: ReadonlySet<string>;
  /** What becomes of the host's certificate; it is issued at once when nothing was set. */
  setFacts(host: string, facts: CertificateFacts): void;
}

const expiresAt = new Date('2027-01-01T00:00:00.000Z');

/** Issues every certificate at once. */
export function createFakeCertificates(): FakeCertificates {
  const hosts = new Set<string>();
  const known = new Map<string, CertificateFacts>();
  return {
    hosts,
    async ensureCertificate(host) {
      hosts.add(host);
    },
    deleteCertificate: async (host) => hosts.delete(host),
    readCertificate: async (host) =>
      hosts.has(host) ? (known.get(host) ?? { status: 'issued', expiresAt, problem: undefined }) : undefined,
    setFacts: (host, facts) => void known.set(host, facts),
  };
}
