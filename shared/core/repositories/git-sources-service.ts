import { requireAppToChange } from '#shared/core/apps/app-access.ts';
import { readChangedApp } from '#shared/core/apps/app-presentation.ts';
import { setGitSource } from '#shared/core/apps/apps-store.ts';
import { checkBranchName } from '#shared/core/apps/branch-name.ts';
import type { Context } from '#shared/core/context.ts';
import type { GitSources } from '#shared/core/repositories/git-sources.ts';
import { ensureSourceKey } from '#shared/core/repositories/source-keys.ts';
import { clearHostKeys } from '#shared/core/repositories/source-keys-store.ts';
import { appWebhookSecret } from '#shared/core/repositories/webhook-secret.ts';
import { checkGitUrl, isOwnRepository, parseGitUrl } from '#shared/sources/git-url.ts';

export function createGitSources(context: Context): GitSources {
  const { db, clock, addresses, settings } = context;
  return {
    async readGitSource(caller, app) {
      const { row } = await requireAppToChange(context, caller, app);
      const isSsh =
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
        deployKey: isSsh ? await ensureSourceKey(context, row.id) : null,
      };
    },

    async setGitSource(caller, app, { url, branch }) {
      const { row } = await requireAppToChange(context, caller, app);
      if (branch !== undefined) checkBranchName(branch);
      if (url !== null) checkGitUrl(url, 'url');
      await setGitSource(db, row.id, { url, branch, now: clock.now() });
      // Whoever sets a source has looked at its host, which may show another key from now on.
      await clearHostKeys(db, row.id);
      return readChangedApp(context, row.id);
    },
  };
}
