import { describe, expect, it } from 'vitest';
import { planCertificate } from './certificate-plan.ts';
import { createKubernetesCertificates } from './certificates.ts';
import { expectGolden } from './testing/expect-golden.ts';
import { createFakeCluster } from './testing/fake-cluster.ts';
import { sampleCertificateSettings as settings } from './testing/samples.ts';

const wildcard = { ...settings, wildcardDomain: 'apps.example.com' };

it('plans certificate and listener of a host as the golden file says', async () => {
  await expectGolden('certificate', planCertificate('shop.example.org', settings));
});

it('plans those of a wildcard as the golden file says', async () => {
  await expectGolden('certificate-wildcard', planCertificate('shop.apps.example.com', wildcard));
});

describe('with a wildcard', () => {
  it('hosts right below the domain share a certificate, which no app deletes; others have their own', async () => {
    const cluster = createFakeCluster();
    const certificates = createKubernetesCertificates(cluster, wildcard);
    for (const host of ['shop.apps.example.com', 'blog.apps.example.com', 'a.b.apps.example.com', 'apps.example.com'])
      await certificates.ensureCertificate(host);
    const names = [...cluster.objects.keys()].filter((key) => key.startsWith('Certificate'));
    expect(names.map((name) => name.split('/')[1])).toEqual([
      'wildcard.apps.example.com',
      'a.b.apps.example.com',
      'apps.example.com',
    ]);
    expect(await certificates.deleteCertificate('shop.apps.example.com')).toBe(false);
    expect(await certificates.readCertificate('blog.apps.example.com')).toMatchObject({ status: 'pending' });
    expect(await certificates.deleteCertificate('apps.example.com')).toBe(true);
    expect(await certificates.deleteCertificate('apps.example.com')).toBe(false);
  });
});

describe('what is reported of a certificate', () => {
  const host = 'shop.example.org';
  const withStatus = async (status: object) => {
    const cluster = createFakeCluster();
    const certificates = createKubernetesCertificates(cluster, settings);
    await certificates.ensureCertificate(host);
    const [certificate] = planCertificate(host, settings);
    if (certificate === undefined) throw new Error('No certificate was planned.');
    await cluster.apply({ ...certificate, status });
    return certificates.readCertificate(host);
  };

  it('is nothing before it was asked for', async () => {
    expect(await createKubernetesCertificates(createFakeCluster(), settings).readCertificate(host)).toBeUndefined();
  });

  it('is when it expires, once it is issued', async () => {
    const status = { conditions: [{ type: 'Ready', status: 'True' }], notAfter: '2027-02-20T00:00:00Z' };
    expect(await withStatus(status)).toEqual({
      status: 'issued',
      expiresAt: new Date('2027-02-20T00:00:00Z'),
      problem: undefined,
    });
  });

  it('is the reason why the issuer refused it', async () => {
    const message = 'The certificate request has failed to complete: acme: 403 urn:ietf:params:acme:error:rejectedIdentifier';
    const conditions = [
      { type: 'Ready', status: 'False', reason: 'DoesNotExist' },
      { type: 'Issuing', status: 'False', reason: 'Failed', message },
    ];
    expect(await withStatus({ conditions })).toEqual({ status: 'failed', expiresAt: undefined, problem: message });
  });
});
