import type { CertificateFacts, Certificates } from '#shared/platform/certificates.ts';
import { type CertificateSettings, certificateName, isCovered, planCertificate } from './certificate-plan.ts';
import type { Cluster, ClusterObject } from './cluster/cluster.ts';
import { kinds } from './cluster/kinds.ts';

/** Certificates by cert-manager, in the namespace of the Gateway. */
export function createKubernetesCertificates(cluster: Cluster, settings: CertificateSettings): Certificates {
  const { gateway, wildcardDomain } = settings;
  const placeOf = (host: string) => ({ name: certificateName(host, wildcardDomain), namespace: gateway.namespace });
  return {
    async ensureCertificate(host) {
      for (const object of planCertificate(host, settings)) await cluster.apply(object);
    },
    async deleteCertificate(host) {
      // Other hosts use the wildcard's.
      if (isCovered(host, wildcardDomain)) return false;
      const place = placeOf(host);
      await cluster.delete({ kind: kinds.listenerSet, ...place });
      const deleted = await cluster.delete({ kind: kinds.certificate, ...place });
      // cert-manager leaves it, so that a Certificate that is created again has its key.
      await cluster.delete({ kind: kinds.secret, ...place });
      return deleted;
    },
    async readCertificate(host) {
      const certificate = await cluster.read({ kind: kinds.certificate, ...placeOf(host) });
      return certificate === undefined ? undefined : factsOf(certificate);
    },
  };
}

interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
}

/** `Ready` says what visitors are shown; `Issuing`, once it is False, how the last attempt for a new one has failed. */
function factsOf({ status }: ClusterObject): CertificateFacts {
  const { conditions = [], notAfter } = (status ?? {}) as { conditions?: readonly Condition[]; notAfter?: string };
  const expiresAt = notAfter === undefined ? undefined : new Date(notAfter);
  if (conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True'))
    return { status: 'issued', expiresAt, problem: undefined };
  const failed = conditions.find(({ type, status: value }) => type === 'Issuing' && value === 'False');
  if (failed === undefined) return { status: 'pending', expiresAt, problem: undefined };
  return { status: 'failed', expiresAt, problem: failed.message ?? failed.reason ?? 'cert-manager gives no reason' };
}
