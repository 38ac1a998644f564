import { parseGitUrl } from '#shared/core/git-url.ts';
import { AppError } from '#shared/errors.ts';
import { fetchByHttp } from '#shared/sources/http-git.ts';
import { type LookUp, systemLookUp } from '#shared/sources/resolve-host.ts';
import type { SourceHosts } from '#shared/sources/source-hosts.ts';
import { createSourceKey, fetchBySsh } from '#shared/sources/ssh-git.ts';

export interface OutsideSourceHostsOptions {
  /** Also hosts in private networks, and plain HTTP. */
  allowPrivate: boolean;
  /** Time for one fetch. */
  seconds: number;
  lookUp?: LookUp;
}

/** Git hosts as they are reached over the network. */
export function createOutsideSourceHosts({
  allowPrivate,
  seconds,
  lookUp = systemLookUp,
}: OutsideSourceHostsOptions): SourceHosts {
  return {
    async fetchSource(asked) {
      const at = parseGitUrl(asked.url);
      if (at === undefined) throw new AppError('validation_failed', 'The address of the source is not one of a git repository.');
      const timeUp = AbortSignal.timeout(seconds * 1000);
      const timed = { ...asked, signal: AbortSignal.any([asked.signal, timeUp]) };
      const options = { allowPrivate, lookUp };
      try {
        return await (at.scheme === 'ssh' ? fetchBySsh(timed, at, options) : fetchByHttp(timed, options));
      } catch (error) {
        if (!timeUp.aborted || asked.signal.aborted) throw error;
        throw new AppError('validation_failed', `${at.host} took more than ${seconds} s to answer.`, { cause: error });
      }
    },
    createKey: async () => createSourceKey(),
  };
}
