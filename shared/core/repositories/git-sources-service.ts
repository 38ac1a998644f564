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
import { parseSourceToken, readSourceToken, sealSourceToken } from '#shared/core/repositories/source-tokens.ts';
import { deleteSourceToken, writeSourceToken } from '#shared/core/repositories/source-tokens-store.ts';
import { appWebhookSecret } from '#shared/core/repositories/webhook-secret.ts';
import { AppError } from '#shared/errors.ts';
import { isOwnRepository, parseGitUrl } from '#shared/sources/git-url.ts';
import type { SourceAccess } from '#shared/sources/source-hosts.ts';
import { SourceUnavailable } from '#shared/sources/source-unavailable.ts';

/** The repositories elsewhere that apps follow. */
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
        hasToken: row.git_url !== null && (await readSourceToken(context, row.id, row.git_url)) !== undefined,
      };
    },

    async setGitSource(caller, app, { url, branch, token: typed }) {
      const { row } = await requireAppToChange(context, caller, app);
      if (branch !== undefined) checkBranchName(branch);
      if (url !== null) await checkSourceAddress(context, url, 'url', row.name);
      const token = typeof typed === 'string' ? parseSourceToken(typed) : undefined;
      if (token !== undefined && url === null) throw tokenWithoutSource();
      const sealed = token && url !== null ? await sealSourceToken(context, row.id, url, token) : undefined;
      const access = token ? { token } : typed === null ? {} : undefined;
      const found = url === null ? undefined : await readDefaultBranch(context, row, url, access);
      const keepsToken = typed === undefined && url !== null && (await readSourceToken(context, row.id, url)) !== undefined;
      await db.transaction().execute(async (trx) => {
        await setGitSource(trx, row.id, { url, branch: branch ?? found, now: clock.now() });
        if (sealed !== undefined) await writeSourceToken(trx, sealed);
        else if (!keepsToken) await deleteSourceToken(trx, row.id);
      });
      // Whoever sets a source has looked at its host, which may show another key from now on.
      await clearHostKeys(db, row.id);
      return readChangedApp(context, row.id);
    },
  };
}

const askMilliseconds = 5000;

function tokenWithoutSource(): AppError {
  const message = 'needs a url';
  return new AppError('validation_failed', 'There is a token and no url that it is for.', {
    details: [{ path: 'token', message }],
  });
}

/**
 * The branch that HEAD names at the git host; undefined when the host does not say, for example for want of the deploy key.
 * @param access what to read it with; left out: what the app has
 * @throws AppError `validation_failed` when the host refuses the token that was just given
 */
async function readDefaultBranch(
  context: Context,
  app: AppRow,
  url: string,
  access: SourceAccess | undefined,
): Promise<string | undefined> {
  try {
    const { defaultBranch } = await readSourceTips(context, app, url, AbortSignal.timeout(askMilliseconds), access);
    if (defaultBranch !== undefined) checkBranchName(defaultBranch);
    return defaultBranch;
  } catch (error) {
    const isRefused = error instanceof AppError && !(error instanceof SourceUnavailable);
    if (isRefused && access?.token !== undefined) throw error;
    if (error instanceof AppError || error instanceof DOMException) return undefined;
    throw error;
  }
}
