import type { BuildSource } from '#shared/core/builds/builds.ts';
import type { RemoteSource } from '#shared/core/repositories/source-fetch.ts';

/** Whether a build is of a repository on another git host. */
export function isRepository(source: BuildSource | null): source is RemoteSource {
  return source !== null && 'ref' in source;
}
