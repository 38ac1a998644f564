import type { Certificates } from '#shared/platform/certificates.ts';
import type { Router } from '#shared/routing/router.ts';

/** The gateway issues the certificate of a host that has a route when it is first asked for, and renews it in time. */
export function createLocalCertificates(router: Pick<Router, 'readCertificate' | 'deleteCertificate'>): Certificates {
  return {
    async ensureCertificate(host) {
      await router.readCertificate(host);
    },
    deleteCertificate: (host) => router.deleteCertificate(host),
    async readCertificate(host) {
      const certificate = await router.readCertificate(host);
      return certificate === undefined ? undefined : { status: 'issued', expiresAt: certificate.expiresAt, problem: undefined };
    },
  };
}
