import { z } from '@hono/zod-openapi';
import { timestamp, uuid } from '#api/openapi/schemas.ts';
import type { Session } from '#shared/identity/identity.ts';

export const SessionSchema = z
  .object({
    id: uuid,
    current: z.boolean().openapi({ description: 'Whether the access token of the request belongs to it.' }),
    source: z.string().openapi({
      description: 'IP address of the login, or its /64 network for IPv6. Empty when unknown.',
      example: '203.0.113.7',
    }),
    client: z.string().openapi({ description: 'User-Agent of the login. Empty when unknown.', example: 'paas-cli/0.1.0' }),
    created_at: timestamp,
    last_used_at: timestamp.openapi({ description: 'When its tokens were refreshed last.' }),
    expires_at: timestamp.openapi({ description: 'When it ends unless its tokens are refreshed.' }),
  })
  .openapi('Session');

export const EndedSessionsSchema = z
  .object({ sessions: z.int(), ssh_keys: z.int(), api_tokens: z.int() })
  .openapi('EndedSessions', { description: 'How many were ended, deleted and revoked.' });

/** A session, and whether the call was made with it. */
export function presentSession(session: Session & { current: boolean }): z.infer<typeof SessionSchema> {
  return {
    id: session.id,
    current: session.current,
    source: session.source,
    client: session.client,
    created_at: session.createdAt.toISOString(),
    last_used_at: session.lastUsedAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
  };
}
