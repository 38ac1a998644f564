import { requireAppToChange } from '#shared/core/apps/app-access.ts';
import type { Context } from '#shared/core/context.ts';
import type { GitSources } from '#shared/core/repositories/git-sources.ts';
import { ensureSourceKey } from '#shared/core/repositories/source-keys.ts';
import { appWebhookSecret } from '#shared/core/webhooks/webhook-secret.ts';
import { isOwnRepository, parseGitUrl } from '#shared/sources/git-url.ts';

export function createGitSources(context: Context): GitSources {
  const { addresses, settings } = context;
  return {
    async readGitSource(caller, app) {
      const { row } = await requireAppToChange(context, caller, app);
      const bySsh =
        row.git_url !== null &&
        parseGitUrl(row.git_url)?.scheme === 'ssh' &&
        !isOwnRepository(row.git_url, addresses.pushUrl(row.name));
      const { webhookSecret, baseUrl } = settings;
      return {
        url: row.git_url,
        branch: row.branch,
        webhook:
          webhookSecret === undefined
            ? null
            : {
                url: `${baseUrl}/v1/webhooks/githost?app=${row.id}`,
                secret: await appWebhookSecret(webhookSecret, row.id),
              },
        deployKey: bySsh ? await ensureSourceKey(context, row.id) : null,
      };
    },
  };
}
