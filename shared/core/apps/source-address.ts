import type { Context } from '#shared/core/context.ts';
import { checkGitUrl, isOwnRepository } from '#shared/sources/git-url.ts';

/**
 * Checks the address of a repository before it is stored: its form, and that this platform may connect to its host.
 * @param field the request field that the error names
 * @param name of the app, whose own repository is always allowed; undefined for an app without one
 * @throws AppError `validation_failed`
 */
export async function checkSourceAddress(
  { addresses, sources }: Pick<Context, 'addresses' | 'sources'>,
  url: string,
  field: string,
  name: string | undefined,
): Promise<void> {
  checkGitUrl(url, field);
  if (name === undefined || !isOwnRepository(url, addresses.pushUrl(name))) await sources.checkAddress(url);
}
