import type { AppRow } from '#shared/core/apps/apps-store.ts';
import { archiveName, fetchArchive, isArchive } from '#shared/core/builds/archive-source.ts';
import type { ArchiveSource, ImageSource } from '#shared/core/builds/builds.ts';
import { type BuildRow, recordCommit, recordSource } from '#shared/core/builds/builds-store.ts';
import { isImage, readImageSource } from '#shared/core/builds/image-source.ts';
import { isRepository } from '#shared/core/builds/repository-source.ts';
import { entriesBelow, readDirectory, requireDirectory } from '#shared/core/builds/source-directory.ts';
import type { Context } from '#shared/core/context.ts';
import { rememberCommitTitle } from '#shared/core/repositories/commit-titles.ts';
import { fetchLargeFiles } from '#shared/core/repositories/large-files.ts';
import { fetchSource } from '#shared/core/repositories/source-fetch.ts';
import { type FetchedSubmodule, fetchSubmodules } from '#shared/core/repositories/submodules.ts';
import { AppError } from '#shared/errors.ts';
import type { GitReader } from '#shared/git/git-storage.ts';
import type { ObjectId } from '#shared/ids.ts';
import type { LineSink, SourceAccess, SourceEntry } from '#shared/platform/builds.ts';
import { isOwnRepository } from '#shared/sources/git-url.ts';
import { SourceUnavailable } from '#shared/sources/source-unavailable.ts';

/** What a build is made of, fetched. */
export interface FetchedSource extends Omit<SourceAccess, 'createAddress'> {
  /** Null for an archive and an image. */
  commit: ObjectId | null;
}

/** Whose source is to be fetched, and who hears of it. */
export interface SourceRequest {
  context: Context;
  app: AppRow;
  build: BuildRow;
  /** Takes lines for the build's log. */
  line: LineSink;
  signal: AbortSignal;
}

/**
 * Fetches what a build is made of, where it is not here yet. Answers `fault`, for the user, when it cannot be had and
 * whoever started the build can fix that.
 */
export async function takeSource(request: SourceRequest): Promise<FetchedSource | { fault: string }> {
  const { build, signal } = request;
  try {
    if (isArchive(build.source)) return await takeArchive(request, build.source);
    if (isImage(build.source)) return takeImage(build.source);
    return await takeTree(request, await takeCommit(request));
  } catch (error) {
    if (signal.aborted || !(error instanceof AppError) || error.code === 'internal') throw error;
    return { fault: error.message };
  }
}

/** What a build was started with, fetched again: for a pipeline that asks for it. @throws AppError when it cannot be had */
export async function takeSourceAgain(request: SourceRequest): Promise<FetchedSource> {
  const { source, commit } = request.build;
  if (isImage(source)) return takeImage(source);
  if (!isArchive(source)) return takeTree(request, (commit ?? '') as ObjectId);
  const archive = await fetchArchive(
    request.context,
    request.build.app_id,
    { ...source, sha256: source.fetchedSha256 ?? source.sha256 },
    request.signal,
  );
  const directory = await readDirectory(request.context.db, request.app);
  return { commit: null, open: () => entriesBelow(archive.read(), directory), close: () => archive.discard() };
}

/** How a release that is made of it is described: the image, the archive's name, or the commit in 8 digits. */
export function describeSource({ commit, source }: Pick<BuildRow, 'commit' | 'source'>): string {
  if (isImage(source)) return source.imageReference;
  return isArchive(source) ? archiveName(source) : (commit?.slice(0, 8) ?? '');
}

function takeImage(source: ImageSource): FetchedSource {
  return { commit: null, open: () => readImageSource(source), close: async () => undefined };
}

async function takeArchive({ context, app, build, line, signal }: SourceRequest, source: ArchiveSource): Promise<FetchedSource> {
  line(`-----> Fetching ${source.archiveUrl}`);
  const archive = await retryUnavailable({ context, line, signal }, () => fetchArchive(context, build.app_id, source, signal));
  const { bytes, files, sha256 } = archive;
  line(`       ${(bytes / 1024 / 1024).toFixed(1)} MiB, ${files} files, sha256:${sha256.slice(0, 12)}`);
  await recordSource(context.db, build, { ...source, fetchedSha256: sha256 });
  const directory = await sayDirectory(context, app, line);
  await closedOnFailure(requireDirectory(archive.read(), directory), () => archive.discard());
  return {
    commit: null,
    open: () => warnOfPointers(entriesBelow(archive.read(), directory), line),
    close: () => archive.discard(),
  };
}

/** The commit to build, in the app's repository by now. */
async function takeCommit({ context, app, build, line, signal }: SourceRequest): Promise<ObjectId> {
  if (!isRepository(build.source)) {
    if (build.commit === null) throw new AppError('validation_failed', 'There is nothing to build.');
    return build.commit as ObjectId;
  }
  line(`-----> Fetching ${build.source.ref.replace('refs/heads/', '')} from ${build.source.url}`);
  const { source } = build;
  const { commit } = await retryUnavailable({ context, line, signal }, () =>
    fetchSource(context, app.repository_id, source, signal),
  );
  await recordCommit(context.db, build.id, commit);
  return commit;
}

/** Pauses before each further attempt at a host that gives no answer. Together four minutes: a restart of the host. */
const retrySeconds = [2, 5, 15, 30, 60, 120];

async function retryUnavailable<Result>(
  { context, line, signal }: Pick<SourceRequest, 'context' | 'line' | 'signal'>,
  fetch: () => Promise<Result>,
): Promise<Result> {
  for (const seconds of retrySeconds) {
    try {
      return await fetch();
    } catch (error) {
      if (!(error instanceof SourceUnavailable)) throw error;
      line(` !     ${error.message} Trying again in ${seconds} s.`);
    }
    await context.clock.sleep(seconds * 1000, signal);
  }
  return fetch();
}

/** The tree of a commit as a build takes it, with those of its submodules. */
async function takeTree({ context, app, build, line, signal }: SourceRequest, commit: ObjectId): Promise<FetchedSource> {
  const { reader } = context.git;
  const repositoryId = app.repository_id;
  const directory = await sayDirectory(context, app, line);
  await rememberCommitTitle(context, repositoryId, commit);
  const url = outsideUrl(context, app, build);
  const submodules = await reader.listSubmodules(repositoryId, commit);
  const { fetched, discard } = await fetchSubmodules(context, submodules, url, {
    repositoryId,
    log: line,
    signal,
  });
  const readTree = () => reader.readTree(repositoryId, commit);
  const isNeeded = (path: string): boolean => path.startsWith(directory);
  const fetchFiles = () => fetchLargeFiles(context, readTree, { repositoryId, url, isNeeded, log: line, signal });
  const largeFiles = await closedOnFailure(retryUnavailable({ context, line, signal }, fetchFiles), discard);
  const close = async (): Promise<void> => {
    await largeFiles.discard();
    await discard();
  };
  const files = (): AsyncGenerator<UnreadEntry> => listFiles(readTree(), { largeFiles, within: fetched }, '');
  await closedOnFailure(requireDirectory(files(), directory), close);
  return { commit, open: () => warnOfPointers(readFiles(entriesBelow(files(), directory)), line), close };
}

async function closedOnFailure<Result>(work: Promise<Result>, close: () => Promise<void>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    await close();
    throw error;
  }
}

/** Changes elsewhere in the repository are built as well: a push asks for it, and its ref moves when its release is live. */
async function sayDirectory({ db }: Context, app: AppRow, line: LineSink): Promise<string> {
  const directory = await readDirectory(db, app);
  if (directory !== '') line(`-----> Building the folder ${directory.slice(0, -1)}`);
  return directory;
}

/** Of the repository elsewhere that the app's is a copy of. */
function outsideUrl({ addresses }: Context, app: AppRow, { source }: BuildRow): string | undefined {
  if (isRepository(source)) return source.url;
  return app.git_url !== null && !isOwnRepository(app.git_url, addresses.pushUrl(app.name)) ? app.git_url : undefined;
}

type UnreadEntry = Omit<SourceEntry, 'content'> & { read(): Promise<SourceEntry['content']> };

async function* listFiles(
  tree: ReturnType<GitReader['readTree']>,
  { largeFiles, within }: Omit<FetchedSubmodule, 'files'>,
  prefix: string,
): AsyncGenerator<UnreadEntry> {
  for await (const { path, kind, read } of tree) {
    if (kind !== 'submodule') {
      const content = kind === 'symlink' ? undefined : largeFiles.read(path);
      yield { path: prefix + path, kind, read: content === undefined ? read : async () => content };
      continue;
    }
    const submodule = within.get(path);
    if (submodule !== undefined) yield* listFiles(submodule.files.readTree(), submodule, `${prefix}${path}/`);
  }
}

async function* readFiles(entries: AsyncIterable<UnreadEntry>): AsyncGenerator<SourceEntry> {
  for await (const { path, kind, read } of entries) yield { path, kind, content: await read() };
}

const lfsPointer = new TextEncoder().encode('version https://git-lfs.github.com/spec/v1');

async function* warnOfPointers(source: AsyncIterable<SourceEntry>, line: LineSink): AsyncGenerator<SourceEntry> {
  for await (const entry of source) {
    const { path, content } = entry;
    if (content instanceof Uint8Array && lfsPointer.every((byte, index) => content[index] === byte))
      line(` !     ${path} is a git-lfs pointer, not the file. Run \`git lfs migrate export --include="${path}"\`.`);
    yield entry;
  }
}
