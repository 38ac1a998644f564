import { z } from '@hono/zod-openapi';
import { timestamp, uuid } from '#api/openapi/schemas.ts';
import type { SshKey } from '#shared/core/accounts/accounts.ts';

export const SshKeySchema = z
  .object({
    id: uuid,
    name: z.string().openapi({ example: 'laptop' }),
    public_key: z.string().openapi({ description: 'Key type and base64 key, without the comment.' }),
    fingerprint: z.string().openapi({ example: 'SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU' }),
    created_at: timestamp,
    last_used_at: timestamp.nullable(),
  })
  .openapi('SshKey');

/** A registered public key. */
export function presentSshKey(key: SshKey): z.infer<typeof SshKeySchema> {
  return {
    id: key.id,
    name: key.name,
    public_key: key.publicKey,
    fingerprint: key.fingerprint,
    created_at: key.createdAt.toISOString(),
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  };
}
