import { z } from '@hono/zod-openapi';
import { timestamp, uuid } from '#api/openapi/schemas.ts';
import { roleSchema } from '#api/resources/account.ts';
import type { Invitation, Member } from '#shared/core/accounts/accounts.ts';

export const MemberSchema = z
  .object({ id: uuid, user_id: z.string(), email: z.string(), role: roleSchema, created_at: timestamp })
  .openapi('Member');

const invitationFields = { id: uuid, email: z.string(), role: roleSchema, created_at: timestamp, expires_at: timestamp };

export const InvitationSchema = z.object(invitationFields).openapi('Invitation');

export const NewInvitationSchema = z
  .object({
    ...invitationFields,
    token: z.string().openapi({
      description: 'Shown only in this answer. Give it to the person you invite. It works once, for the invited address.',
    }),
  })
  .openapi('NewInvitation');

export const JoinedTenantSchema = z
  .object({ id: z.string().openapi({ example: 'k3v9x2ab' }), name: z.string(), role: roleSchema })
  .openapi('JoinedTenant');

/** A member of a tenant. */
export function presentMember(member: Member): z.infer<typeof MemberSchema> {
  const { id, userId, email, role, createdAt } = member;
  return { id, user_id: userId, email, role, created_at: createdAt.toISOString() };
}

/** An invitation without its secret, which is shown once, when it is created. */
export function presentInvitation(invitation: Invitation): z.infer<typeof InvitationSchema> {
  const { id, email, role, createdAt, expiresAt } = invitation;
  return { id, email, role, created_at: createdAt.toISOString(), expires_at: expiresAt.toISOString() };
}
