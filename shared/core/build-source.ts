import { archiveName, fetchArchive, isArchive } from '#shared/core/archive-source.ts';
import type { Context } from '#shared/core/context.ts';
import { fetchSource } from '#shared/core/source-fetch.ts';
import type { AppRow } from '#shared/database/apps.ts';
import type { BuildRow } from '#shared/database/builds.ts';
import type { ArchiveSource } from '#shared/database/schema.ts';
import { AppError } from '#shared/errors.ts';
import type { GitReader } from '#shared/git/repository.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';
import type { LineSink, OpenSource, SourceEntry } from '#shared/platform/platform.ts';

/** What a build is made of, here by now. */
export interface TakenSource {
  /** Null for an archive. */
  commit: ObjectId | null;
  open: OpenSource;
  /** Forgets what is here for this build only. */
  discard(): Promise<void>;
}

/** Answers why it cannot be had where whoever started the build can mend that. */
export async function takeSource(
  context: Context,
  app: AppRow,
  build: BuildRow,
  tell: LineSink,
  signal: AbortSignal,
): Promise<TakenSource | { fault: string }> {
  try {
    if (isArchive(build.source)) return await takeArchive(context, build, build.source, tell, signal);
    const commit = await takeCommit(context, app, build, tell, signal);
    const open = gitSource(context.git.reader, app.repository_id, commit, tell);
    return { commit, open, discard: async () => undefined };
  } catch (error) {
    if (signal.aborted || !(error instanceof AppError) || error.code === 'internal') throw error;
    return { fault: error.message };
  }
}

/** How a release is described that is made of it. */
export function describeSource({ commit, source }: Pick<BuildRow, 'commit' | 'source'>): string {
  return isArchive(source) ? archiveName(source) : (commit?.slice(0, 8) ?? '');
}

async function takeArchive(
  context: Context,
  build: BuildRow,
  source: ArchiveSource,
  tell: LineSink,
  signal: AbortSignal,
): Promise<TakenSource> {
  tell(`-----> Fetching ${source.archiveUrl}`);
  const archive = await fetchArchive(context, build.app_id, source, signal);
  const { bytes, files, sha256 } = archive;
  tell(`       ${(bytes / 1024 / 1024).toFixed(1)} MiB, ${files} files, sha256:${sha256.slice(0, 12)}`);
  await context.db
    .updateTable('builds')
    .set({ source: JSON.stringify({ ...source, fetchedSha256: sha256 }) })
    .where('id', '=', build.id)
    .where('attempt', '=', build.attempt)
    .execute();
  return { commit: null, open: () => tellPointers(archive.read(), tell), discard: () => archive.discard() };
}

/** The commit to build, in the app's repository by now. */
async function takeCommit(
  context: Context,
  app: AppRow,
  build: BuildRow,
  tell: LineSink,
  signal: AbortSignal,
): Promise<ObjectId> {
  if (isArchive(build.source) || build.source === null) {
    if (build.commit === null) throw new AppError('validation_failed', 'There is nothing to build.');
    return build.commit as ObjectId;
  }
  tell(`-----> Fetching ${build.source.ref.replace('refs/heads/', '')} from ${build.source.url}`);
  const { commit } = await fetchSource(context, app.repository_id, build.source, signal);
  await context.db.updateTable('builds').set({ commit }).where('id', '=', build.id).execute();
  return commit;
}

/** The tree of a commit as a build takes it. What git keeps elsewhere is told to the person who pushed. */
function gitSource(reader: GitReader, repositoryId: RepositoryId, commit: ObjectId, tell: LineSink): OpenSource {
  return () => tellPointers(readTree(reader, repositoryId, commit, tell), tell);
}

async function* readTree(
  reader: GitReader,
  repositoryId: RepositoryId,
  commit: ObjectId,
  tell: LineSink,
): AsyncGenerator<SourceEntry> {
  for await (const { path, kind, read } of reader.readTree(repositoryId, commit)) {
    if (kind === 'submodule')
      tell(` !     ${path} is a git submodule; its files are not built. Add them to the repository itself.`);
    else yield { path, kind, content: await read() };
  }
}

const lfsPointer = new TextEncoder().encode('version https://git-lfs.github.com/spec/v1');

async function* tellPointers(source: AsyncIterable<SourceEntry>, tell: LineSink): AsyncGenerator<SourceEntry> {
  for await (const entry of source) {
    const { path, content } = entry;
    if (content instanceof Uint8Array && lfsPointer.every((byte, index) => content[index] === byte))
      tell(` !     ${path} is a git-lfs pointer, not the file. Run \`git lfs migrate export --include="${path}"\`.`);
    yield entry;
  }
}
