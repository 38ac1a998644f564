import type { Context } from '#shared/core/context.ts';
import { readSourceTokenRow, type SourceTokenRow } from '#shared/core/repositories/source-tokens-store.ts';
import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import { parseGitUrl } from '#shared/sources/git-url.ts';
import type { SourceToken } from '#shared/sources/source-hosts.ts';

/** Bound into the seal: the token of one app does not open as another's. */
const purpose = (appId: AppId): string => `source token of app ${appId}`;
const tokenPattern = /^(?:([A-Za-z0-9._+-]{1,100}):)?([\x21-\x39\x3b-\x7e]{1,1000})$/;
/** GitHub, GitLab, Gitea and Forgejo accept any name with a token; Bitbucket wants this one. */
const anyUser = 'x-token-auth';

/** Reads a token as people write it: alone, or as `user:token`. @throws AppError validation_failed */
export function parseSourceToken(text: string): SourceToken {
  const [, user = anyUser, value] = tokenPattern.exec(text) ?? [];
  if (value !== undefined) return { user, value };
  const message = 'must be a token of the git host, or user:token';
  throw new AppError('validation_failed', `The token ${message}.`, { details: [{ path: 'token', message }] });
}

/** The row of a token for a repository. @throws AppError validation_failed for an address that takes no token */
export async function sealSourceToken(
  { secrets }: Pick<Context, 'secrets'>,
  appId: AppId,
  url: string,
  { user, value }: SourceToken,
): Promise<SourceTokenRow> {
  const origin = originOf(url);
  if (origin === undefined) {
    const message = 'is for https addresses. An SSH address has a deploy key: paas git:source';
    throw new AppError('validation_failed', `A token ${message}.`, { details: [{ path: 'token', message }] });
  }
  return { app_id: appId, origin, user_name: user, token: await secrets.seal(value, purpose(appId)) };
}

/** The app's token, if it is for the host of this address. */
export async function readSourceToken(
  { db, secrets }: Pick<Context, 'db' | 'secrets'>,
  appId: AppId,
  url: string,
): Promise<SourceToken | undefined> {
  const row = await readSourceTokenRow(db, appId);
  if (row === undefined || row.origin !== originOf(url)) return undefined;
  return { user: row.user_name, value: await secrets.open(row.token, purpose(appId)) };
}

/** Undefined for an SSH address. */
export function originOf(url: string): string | undefined {
  const scheme = parseGitUrl(url)?.scheme;
  return scheme === 'https' || scheme === 'http' ? new URL(url).origin : undefined;
}
