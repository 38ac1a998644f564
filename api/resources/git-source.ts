import { z } from '@hono/zod-openapi';
import type { GitSource } from '#shared/core/repositories/git-sources.ts';

export const GitSourceSchema = z
  .object({
    url: z.string().nullable(),
    branch: z.string().openapi({ example: 'main' }),
    webhook: z
      .object({ url: z.string(), secret: z.string() })
      .nullable()
      .openapi({ description: 'What to enter at the git host. Null while the operator has not turned webhooks on.' }),
    deploy_key: z
      .string()
      .nullable()
      .openapi({ description: 'Public key to add at the git host, for a `url` by SSH.', example: 'ssh-ed25519 AAAA…' }),
  })
  .openapi('GitSource');

export function presentGitSource({ url, branch, webhook, deployKey }: GitSource): z.infer<typeof GitSourceSchema> {
  return { url, branch, webhook, deploy_key: deployKey };
}
