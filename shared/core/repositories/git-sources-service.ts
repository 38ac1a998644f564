import { requireAppToChange } from '#shared/core/apps/app-access.ts';
import { readChangedApp } from '#shared/core/apps/app-presentation.ts';
import { type AppRow, setGitSource } from '#shared/core/apps/apps-store.ts';
import { checkBranchName } from '#shared/core/apps/branch-name.ts';
import { checkSourceAddress } from '#shared/core/apps/source-address.ts';
import type { Context } from '#shared/core/context.ts';
import type { GitSources } from '#shared/core/repositories/git-sources.ts';
import { readSourceTips } from '#shared/core/repositories/source-fetch.ts';
import { ensureSourceKey } from '#shared/core/repositories/source-keys.ts';
import { clearHostKeys } from '#shared/core/repositories/source-keys-store.ts';
import { appWebhookSecret } from '#shared/core/repositories/webhook-secret.ts';
import { AppError } from '#shared/errors.ts';
import { isOwnRepository, parseGitUrl } from '#shared/sources/git-url.ts';

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
      if (url !== null) await checkSourceAddress(context, url, 'url', row.name);
      const deployed = branch ?? (url === null ? undefined : await readDefaultBranch(context, row, url));
      await setGitSource(db, row.id, { url, branch: deployed, now: clock.now() });
      // Whoever sets a source has looked at its host, which may show another key from now on.
      await clearHostKeys(db, row.id);
      return readChangedApp(context, row.id);
    },
  };
}

const askMilliseconds = 5000;

/** The branch that HEAD names at the git host; undefined when the host does not say, for example for want of the deploy key. */
async function readDefaultBranch(context: Context, app: AppRow, url: string): Promise<string | undefined> {
  try {
    const { defaultBranch } = await readSourceTips(context, app, url, AbortSignal.timeout(askMilliseconds));
    if (defaultBranch !== undefined) checkBranchName(defaultBranch);
    return defaultBranch;
  } catch (error) {
    if (error instanceof AppError || error instanceof DOMException) return undefined;
    throw error;
  }
}
