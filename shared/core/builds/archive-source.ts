import type { ArchiveSource, BuildSource } from '#shared/core/builds/builds.ts';
import type { Context } from '#shared/core/context.ts';
import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import type { FetchedArchive } from '#shared/sources/source-hosts.ts';

const sha256Pattern = /^[0-9a-f]{64}$/i;

/** Bound into the seal: what was given for one app is not fetched for another. */
const purpose = (appId: AppId): string => `source archive of app ${appId}`;

/**
 * What a build's row keeps of the archive it is to be built of. The whole address is sealed, as a signed one lets anybody
 * who has it read the source.
 * @throws AppError validation_failed
 */
export async function toArchiveSource(
  { secrets, sources }: Context,
  appId: AppId,
  { url: text, sha256 }: { url: string; sha256: string | undefined },
): Promise<ArchiveSource> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw invalid('source_url', 'must be the https address of a tar.gz');
  if (url.username !== '' || url.password !== '')
    throw invalid(
      'source_url',
      'must not have a user or a password in it: give a signed address, with the signature in the query',
    );
  if (sha256 !== undefined && !sha256Pattern.test(sha256))
    throw invalid('source_sha256', 'must be 64 hex digits, as `sha256sum source.tar.gz` prints');
  await sources.checkAddress(url.href);
  url.hash = '';
  const sealedUrl = await secrets.seal(url.href, purpose(appId));
  return { archiveUrl: url.origin + url.pathname, sealedUrl, sha256: sha256?.toLowerCase() ?? null };
}

/** Whether a build is of an archive that is downloaded. */
export function isArchive(source: BuildSource | null): source is ArchiveSource {
  return source !== null && 'archiveUrl' in source;
}

/** What people call it: the last name in its address, or the host. */
export function archiveName({ archiveUrl }: ArchiveSource): string {
  const { pathname, host } = new URL(archiveUrl);
  return pathname.split('/').findLast((part) => part !== '') ?? host;
}

/** @throws AppError validation_failed for faults that the user can fix */
export async function fetchArchive(
  { secrets, sources }: Context,
  appId: AppId,
  { sealedUrl, sha256 }: ArchiveSource,
  signal: AbortSignal,
): Promise<FetchedArchive> {
  const url = await secrets.open(sealedUrl, purpose(appId));
  return sources.fetchArchive({ url, sha256: sha256 ?? undefined, signal });
}

function invalid(path: string, message: string): AppError {
  return new AppError('validation_failed', `The ${path} ${message}.`, { details: [{ path, message }] });
}
