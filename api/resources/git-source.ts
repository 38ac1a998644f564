import { z } from '@hono/zod-openapi';
import type { GitSource } from '#shared/core/repositories/git-sources.ts';

export const GitSourceSchema = z
  .object({
    url: z.string().nullable(),
    branch: z.string().openapi({ example: 'main' }),
    webhook: z
      .object({ url: z.string(), secret: z.string() })
      .nullable()
      .openapi({ description: 'URL and secret to enter at the git host. Null: the operator has not enabled webhooks.' }),
    deploy_key: z
      .string()
      .nullable()
      .openapi({ description: 'Public key to add at the git host. For an SSH `url` only.', example: 'ssh-ed25519 AAAA…' }),
  })
  .openapi('GitSource');

export function presentGitSource({ url, branch, webhook, deployKey }: GitSource): z.infer<typeof GitSourceSchema> {
  return { url, branch, webhook, deploy_key: deployKey };
}
