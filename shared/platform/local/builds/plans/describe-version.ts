import type { VersionRequest } from '../../toolchains/toolchain.ts';

/** A note of a plan: 'Using Ruby 3.1.2 (.ruby-version asks for 3.1)'. */
export function describeVersion(label: string, version: string, request: VersionRequest | undefined): string {
  return `Using ${label} ${version}${request === undefined ? '' : ` (${request.source} asks for ${request.version})`}`;
}
