import { tmpdir } from 'node:os';
import { AppError } from '#shared/errors.ts';
import { limits } from '#shared/limits.ts';
import { type ArchiveFetchOptions, fetchArchive } from '#shared/sources/archive-fetch.ts';
import { commentOnPullRequests, setCommitStatus } from '#shared/sources/git-host-api.ts';
import { parseGitUrl } from '#shared/sources/git-url.ts';
import { requireHttps } from '#shared/sources/guarded-request.ts';
import { fetchByHttp } from '#shared/sources/http-git.ts';
import { listTipsByHttp } from '#shared/sources/http-tips.ts';
import { fetchLargeFiles } from '#shared/sources/lfs-fetch.ts';
import { type LookUp, resolveHost, systemLookUp, UnknownHost } from '#shared/sources/resolve-host.ts';
import type { SourceHosts } from '#shared/sources/source-hosts.ts';
import { SourceUnavailable } from '#shared/sources/source-unavailable.ts';
import { createSourceKey, fetchBySsh, listTipsBySsh } from '#shared/sources/ssh-git.ts';

/** How external hosts are reached. */
export interface OutsideSourceHostsOptions {
  /** Allows plain HTTP and hosts in private networks. */
  allowPrivate: boolean;
  /** Time limit of one fetch. */
  seconds: number;
  lookUp?: LookUp;
  /** Directory for archives and large files while they are in use. Default: the system's temporary directory. */
  directory?: string;
  archiveLimits?: ArchiveFetchOptions['limits'];
}

/** Git hosts and file servers reached over the network. */
export function createOutsideSourceHosts({
  allowPrivate,
  seconds,
  lookUp = systemLookUp,
  directory = tmpdir(),
  archiveLimits = limits.archive,
}: OutsideSourceHostsOptions): SourceHosts {
  const options = { allowPrivate, lookUp };
  const inTime = async <Result>(
    host: string,
    stopped: AbortSignal,
    fetch: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> => {
    const timeUp = AbortSignal.timeout(seconds * 1000);
    try {
      return await fetch(AbortSignal.any([stopped, timeUp]));
    } catch (error) {
      if (!timeUp.aborted || stopped.aborted) throw error;
      throw new SourceUnavailable(`${host} took more than ${seconds} s to answer.`, error);
    }
  };
  return {
    async fetchSource(asked) {
      const at = parseGitUrl(asked.url);
      if (at === undefined) throw new AppError('validation_failed', 'The source URL is not the URL of a git repository.');
      return inTime(at.host, asked.signal, async (signal) => {
        const timed = { ...asked, signal };
        return at.scheme === 'ssh' ? fetchBySsh(timed, at, options) : fetchByHttp(timed, options);
      });
    },
    async checkAddress(url) {
      const at = parseGitUrl(url);
      if (at?.scheme !== 'ssh') requireHttps(new URL(url), allowPrivate);
      await resolveHost(at?.host ?? new URL(url).hostname, lookUp, allowPrivate).catch((error: unknown) => {
        // It may exist by the time of the first build.
        if (!(error instanceof UnknownHost)) throw error;
      });
    },
    async listTips(asked) {
      const at = parseGitUrl(asked.url);
      if (at === undefined) throw new AppError('validation_failed', 'The source URL is not the URL of a git repository.');
      return inTime(at.host, asked.signal, async (signal) => {
        const timed = { ...asked, signal };
        return at.scheme === 'ssh' ? listTipsBySsh(timed, at, options) : listTipsByHttp(timed, options);
      });
    },
    setCommitStatus: (asked) =>
      inTime(new URL(asked.url).host, asked.signal, (signal) => setCommitStatus({ ...asked, signal }, options)),
    commentOnPullRequests: (asked) =>
      inTime(new URL(asked.url).host, asked.signal, (signal) => commentOnPullRequests({ ...asked, signal }, options)),
    async fetchArchive(asked) {
      if (!URL.canParse(asked.url)) throw new AppError('validation_failed', 'The URL of the source archive is not valid.');
      return inTime(new URL(asked.url).host, asked.signal, (signal) =>
        fetchArchive({ ...asked, signal }, { ...options, directory, limits: archiveLimits }),
      );
    },
    async fetchLargeFiles(asked) {
      const host = parseGitUrl(asked.endpoint ?? asked.url)?.host ?? 'The Git LFS server';
      return inTime(host, asked.signal, (signal) => fetchLargeFiles({ ...asked, signal }, { ...options, directory }));
    },
    createKey: async () => createSourceKey(),
  };
}
