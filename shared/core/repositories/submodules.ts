import type { Context } from '#shared/core/context.ts';
import { fetchLargeFiles, type LargeFiles } from '#shared/core/repositories/large-files.ts';
import { readSourceAccess } from '#shared/core/repositories/source-keys.ts';
import { AppError } from '#shared/errors.ts';
import type { Snapshot, Submodule } from '#shared/git/git-storage.ts';
import type { RepositoryId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import type { LineSink } from '#shared/platform/builds.ts';
import { parseGitUrl } from '#shared/sources/git-url.ts';

/** By path: the files of each submodule, and its own submodules. */
export type FetchedSubmodules = ReadonlyMap<string, FetchedSubmodule>;

export interface FetchedSubmodule {
  files: Snapshot;
  largeFiles: LargeFiles;
  within: FetchedSubmodules;
}

export interface SubmoduleFetch {
  /** The repository beside which they are stored until `discard`. */
  repositoryId: RepositoryId;
  /** Writes a line of the build's log. */
  log: LineSink;
  signal: AbortSignal;
}

/**
 * Fetches the commit of each submodule and, recursively, of its submodules. A submodule whose address cannot be fetched
 * from here is reported in the log and left out; a fetch that fails is an error.
 * @param baseUrl what relative addresses are relative to; undefined when there is none
 * @throws AppError `validation_failed` for what the owner of the app can fix
 */
export async function fetchSubmodules(
  context: Context,
  submodules: readonly Submodule[],
  baseUrl: string | undefined,
  { repositoryId, log, signal }: SubmoduleFetch,
): Promise<{ fetched: FetchedSubmodules; discard(): Promise<void> }> {
  const timeout = AbortSignal.timeout(limits.submodules.seconds * 1000);
  const signalOrTimeout = AbortSignal.any([signal, timeout]);
  const snapshots: Snapshot[] = [];
  const largeFiles: LargeFiles[] = [];
  const discard = async (): Promise<void> => {
    for (const each of [...snapshots, ...largeFiles]) await each.discard();
  };

  const fetchOne = async ({ path, commit }: Submodule, url: string): Promise<Omit<FetchedSubmodule, 'within'>> => {
    if (snapshots.length === limits.submodules.count)
      throw fault(`There are more than ${limits.submodules.count} git submodules`);
    log(`       ${path} from ${url}`);
    const access = await readSourceAccess(context, repositoryId, url);
    const request = { url, ref: '', commit, haves: [], withoutHistory: true as const, signal: signalOrTimeout, ...access };
    const { pack } = await context.sources.fetchSource(request);
    const snapshot = await context.git.takeSnapshot(repositoryId, commit, pack, signalOrTimeout);
    snapshots.push(snapshot);
    if (snapshots.reduce((sum, { bytes }) => sum + bytes, 0) > limits.submodules.bytes)
      throw fault(`The git submodules are together larger than ${limits.submodules.bytes / 1024 / 1024} MiB`);
    const large = await fetchLargeFiles(context, () => snapshot.readTree(), { repositoryId, url, log, signal: signalOrTimeout });
    largeFiles.push(large);
    return { files: snapshot, largeFiles: large };
  };

  const fetchAll = async (of: readonly Submodule[], base: string | undefined, prefix: string, depth: number) => {
    const fetched = new Map<string, FetchedSubmodule>();
    for (const submodule of of) {
      const named = { ...submodule, path: prefix + submodule.path };
      const found = findUrl(submodule, base);
      if ('problem' in found) {
        log(` !     ${named.path} is a git submodule ${found.problem}. Its files are not built.`);
        continue;
      }
      if (depth > limits.submodules.depth)
        throw fault(`The git submodule ${named.path} is more than ${limits.submodules.depth} deep`);
      const one = await fetchOne(named, found.url).catch((error: unknown) => {
        throw timeout.aborted && !signal.aborted ? tooSlow(named.path) : explain(error, named.path);
      });
      const within = await fetchAll(await one.files.listSubmodules(), found.url, `${named.path}/`, depth + 1);
      fetched.set(submodule.path, { ...one, within });
    }
    return fetched;
  };

  if (submodules.length > 0) log('-----> Fetching git submodules');
  try {
    return { fetched: await fetchAll(submodules, baseUrl, '', 1), discard };
  } catch (error) {
    await discard();
    throw error;
  }
}

/** The address to fetch a submodule from, or why there is none. */
function findUrl({ url, isOff }: Submodule, base: string | undefined): { url: string } | { problem: string } {
  if (isOff) return { problem: 'with `update = none`' };
  if (url === undefined) return { problem: 'without an address in .gitmodules' };
  const isRelative = /^\.\.?\//.test(url);
  if (isRelative && base === undefined)
    return {
      problem: 'with a relative address, but the app has no git_url it could be relative to. Give it an https address',
    };
  const at = isRelative && base !== undefined ? resolveUrl(url, base) : url;
  const parsed = at === undefined ? undefined : parseGitUrl(at);
  if (at !== undefined && (parsed?.scheme === 'https' || parsed?.scheme === 'http')) return { url: at };
  // The app's deploy key may have been added to this repository of the same host, too.
  const source = base === undefined ? undefined : parseGitUrl(base);
  const isSameHost = source?.scheme === 'ssh' && source.host === parsed?.host && source.port === parsed.port;
  if (at !== undefined && parsed?.scheme === 'ssh' && isSameHost) return { url: at };
  return {
    problem: 'whose address is not https, or contains a password. Give it an https address without a password in .gitmodules',
  };
}

/** As git does it: each `../` removes one name. Undefined when the host would be removed too. */
export function resolveUrl(relative: string, base: string): string | undefined {
  let [url, rest] = [base.replace(/\/+$/, ''), relative];
  for (;;) {
    if (rest.startsWith('./')) rest = rest.slice(2);
    else if (rest.startsWith('../')) [url, rest] = [url.slice(0, Math.max(url.lastIndexOf('/'), 0)), rest.slice(3)];
    else break;
  }
  const resolved = `${url}/${rest}`;
  return parseGitUrl(resolved)?.host === parseGitUrl(base)?.host ? resolved : undefined;
}

function explain(error: unknown, path: string): unknown {
  if (!(error instanceof AppError) || error.code === 'internal') return error;
  const cause = error.message.replace(/\.$/, '');
  return fault(
    `The git submodule ${path} could not be fetched: ${cause}. Make it readable by everybody, or with the token of the app's source, add its files to the repository itself, or set \`update = none\` for it in .gitmodules to build without it`,
    error,
  );
}

function tooSlow(path: string): AppError {
  return fault(`Fetching the git submodules took more than ${limits.submodules.seconds} s, up to ${path}`);
}

function fault(what: string, cause?: unknown): AppError {
  return new AppError('validation_failed', `${what}.`, { cause });
}
