import { z } from '@hono/zod-openapi';
import { timestamp } from '#api/openapi/schemas.ts';
import type { GitSource } from '#shared/core/repositories/git-sources.ts';
import type { ReceivedDelivery } from '#shared/core/webhooks/webhooks.ts';

export const GitSourceSchema = z
  .object({
    url: z.string().nullable(),
    branch: z.string().openapi({ example: 'main' }),
    webhook: z
      .object({
        url: z.string(),
        secret: z.string(),
        content_type: z.string().openapi({ example: 'application/json' }),
        events: z
          .array(z.string())
          .openapi({ description: 'To be chosen at the git host.', example: ['push', 'delete', 'pull_request'] }),
      })
      .nullable()
      .openapi({ description: 'URL and secret to enter at the git host. Null: the operator has not enabled webhooks.' }),
    deploy_key: z
      .string()
      .nullable()
      .openapi({ description: 'Public key to add at the git host. For an SSH `url` only.', example: 'ssh-ed25519 AAAA…' }),
    has_token: z.boolean().openapi({ description: 'Whether there is a token for the host of `url`. It is never shown.' }),
  })
  .openapi('GitSource');

export const ReceivedDeliverySchema = z
  .object({
    provider: z.string().openapi({ example: 'gitea' }),
    event: z.string().openapi({ example: 'push' }),
    delivery_id: z.string().openapi({ description: 'By which the git host lists it.' }),
    outcome: z.enum(['started', 'removed', 'ignored', 'replayed', 'accepted', 'refused']),
    message: z.string().openapi({ description: 'What was answered.', example: 'A build of main at 5478677c was started.' }),
    received_at: timestamp,
  })
  .openapi('ReceivedDelivery');

/** A webhook delivery and what became of it. */
export function presentReceivedDelivery(delivery: ReceivedDelivery): z.infer<typeof ReceivedDeliverySchema> {
  const { provider, event, deliveryId, outcome, message, receivedAt } = delivery;
  return { provider, event, delivery_id: deliveryId, outcome, message, received_at: receivedAt.toISOString() };
}

/** The git source of an app, without its token. */
export function presentGitSource({ url, branch, webhook, deployKey, hasToken }: GitSource): z.infer<typeof GitSourceSchema> {
  return {
    url,
    branch,
    webhook: webhook && { ...webhook, content_type: 'application/json', events: ['push', 'delete', 'pull_request'] },
    deploy_key: deployKey,
    has_token: hasToken,
  };
}
