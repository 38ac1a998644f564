import { X509Certificate } from 'node:crypto';
import { expect, inject, it } from 'vitest';
import { createKubernetesCertificates } from '#shared/platform/kubernetes/certificates.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { sampleCertificateSettings as settings } from '#shared/platform/kubernetes/testing/samples.ts';

const connect = () => connectCluster({ kubeconfig: inject('kubeconfig') });

it('cert-manager issues the certificate of a host, and nothing of it is left when it is deleted', async () => {
  const cluster = connect();
  const certificates = createKubernetesCertificates(cluster, settings);
  const host = `shop-${crypto.randomUUID()}.example.org`;
  expect(await certificates.readCertificate(host)).toBeUndefined();
  await certificates.ensureCertificate(host);
  await expect.poll(() => certificates.readCertificate(host)).toMatchObject({ status: 'issued', problem: undefined });
  const secret = await cluster.read({ kind: kinds.secret, name: host, namespace: 'gateway' });
  const issued = new X509Certificate(Buffer.from(secret?.data?.['tls.crt'] ?? '', 'base64'));
  expect(issued.subjectAltName).toBe(`DNS:${host}`);
  expect((await certificates.readCertificate(host))?.expiresAt).toEqual(new Date(issued.validTo));

  await certificates.ensureCertificate(host);
  expect(await certificates.readCertificate(host)).toMatchObject({ status: 'issued' });
  expect(await certificates.deleteCertificate(host)).toBe(true);
  expect(await certificates.deleteCertificate(host)).toBe(false);
  for (const kind of [kinds.certificate, kinds.listenerSet, kinds.secret])
    expect(await cluster.read({ kind, name: host, namespace: 'gateway' })).toBeUndefined();
});

it('one wildcard certificate covers all hosts below its domain', async () => {
  const domain = `apps-${crypto.randomUUID().slice(0, 8)}.example.com`;
  const cluster = connect();
  const certificates = createKubernetesCertificates(cluster, { ...settings, wildcardDomain: domain });
  await certificates.ensureCertificate(`shop.${domain}`);
  await certificates.ensureCertificate(`blog.${domain}`);
  await expect.poll(() => certificates.readCertificate(`shop.${domain}`)).toMatchObject({ status: 'issued' });
  const secret = await cluster.read({ kind: kinds.secret, name: `wildcard.${domain}`, namespace: 'gateway' });
  const issued = new X509Certificate(Buffer.from(secret?.data?.['tls.crt'] ?? '', 'base64'));
  expect(issued.subjectAltName).toBe(`DNS:*.${domain}`);
});

it('reports a certificate as pending whose issuer does not exist, and deletes it', async () => {
  const certificates = createKubernetesCertificates(connect(), {
    ...settings,
    issuer: { kind: 'ClusterIssuer', name: 'nobody' },
  });
  const host = `refused-${crypto.randomUUID()}.example.org`;
  await certificates.ensureCertificate(host);
  await expect.poll(() => certificates.readCertificate(host)).toMatchObject({ status: 'pending' });
  expect(await certificates.deleteCertificate(host)).toBe(true);
});
