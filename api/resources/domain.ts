import { z } from '@hono/zod-openapi';
import { timestamp } from '#api/openapi/schemas.ts';
import type { Domain } from '#shared/core/apps/apps.ts';

export const DomainSchema = z
  .object({
    host: z.string().openapi({ description: 'Host name in ASCII (Punycode).', example: 'www.example.com' }),
    status: z
      .enum(['pending', 'active'])
      .openapi({ description: '`pending`: the ownership of the host is not proven yet. `active`: the host serves the app.' }),
    proof: z
      .object({
        name: z.string().openapi({ example: '_paas.www.example.com' }),
        value: z.string().openapi({ example: 'paas-domain=5f1c0a7e9d3b4c2f8e6a1b0d7c9e3f52' }),
      })
      .nullable()
      .openapi({ description: 'The DNS TXT record to publish. Null when no proof is needed.' }),
    certificate: z.object({
      status: z.enum(['pending', 'issued']),
      expires_at: timestamp.nullable(),
    }),
    created_at: timestamp,
  })
  .openapi('Domain');

/** A custom domain, with the DNS record that proves it while it is pending. */
export function presentDomain(domain: Domain): z.infer<typeof DomainSchema> {
  return {
    host: domain.host,
    status: domain.status,
    proof: domain.proof,
    certificate: { status: domain.certificate.status, expires_at: domain.certificate.expiresAt?.toISOString() ?? null },
    created_at: domain.createdAt.toISOString(),
  };
}
