import type { ClusterObject } from './cluster/cluster.ts';
import { managedLabels } from './names.ts';

/** What the operator decides about TLS. */
export interface CertificateSettings {
  /** The Gateway that visitors reach; certificates and listeners are in its namespace. */
  gateway: { name: string; namespace: string };
  /** Of cert-manager. */
  issuer: { kind: 'ClusterIssuer' | 'Issuer'; name: string };
  /**
   * A domain, all hosts right below which share one certificate: 'apps.example.com' for `*.apps.example.com`. Issuers limit the
   * certificates a week, so many apps need it; the issuer must then answer DNS-01 challenges. Undefined: one for each host.
   */
  wildcardDomain: string | undefined;
}

/** The name of the Certificate that covers a host, also of its Secret and of its ListenerSet. */
export function certificateName(host: string, wildcardDomain: string | undefined): string {
  return isCovered(host, wildcardDomain) ? `wildcard.${wildcardDomain}` : host;
}

/** Whether the wildcard's certificate is the host's too. It stands for one label. */
export function isCovered(host: string, wildcardDomain: string | undefined): boolean {
  return (
    wildcardDomain !== undefined &&
    host.endsWith(`.${wildcardDomain}`) &&
    !host.slice(0, -wildcardDomain.length - 1).includes('.')
  );
}

/** The Certificate and the listener that shows it. */
export function planCertificate(host: string, { gateway, issuer, wildcardDomain }: CertificateSettings): ClusterObject[] {
  const name = certificateName(host, wildcardDomain);
  const hostname = isCovered(host, wildcardDomain) ? `*.${wildcardDomain}` : host;
  const metadata = { name, namespace: gateway.namespace, labels: managedLabels };
  return [
    {
      apiVersion: 'cert-manager.io/v1',
      kind: 'Certificate',
      metadata,
      spec: {
        secretName: name,
        dnsNames: [hostname],
        issuerRef: { group: 'cert-manager.io', ...issuer },
        privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' },
      },
    },
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'ListenerSet',
      metadata,
      spec: {
        parentRef: { group: 'gateway.networking.k8s.io', kind: 'Gateway', ...gateway },
        listeners: [
          {
            name: 'https',
            hostname,
            port: 443,
            protocol: 'HTTPS',
            tls: { mode: 'Terminate', certificateRefs: [{ group: '', kind: 'Secret', name }] },
            allowedRoutes: { namespaces: { from: 'All' } },
          },
        ],
      },
    },
  ];
}
