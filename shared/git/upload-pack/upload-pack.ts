import { GitFault } from '#shared/git/git-fault.ts';
import type { GitRepository, GitStream } from '#shared/git/git-storage.ts';
import { PackStorageError } from '#shared/git/packs/files/pack-files.ts';
import { encodePacket } from '#shared/git/protocol/pkt-line.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import { serveFetchV0 } from '#shared/git/upload-pack/fetch-v0.ts';
import { serveFetchV2 } from '#shared/git/upload-pack/fetch-v2.ts';

/** Exit status of `git upload-pack` when the client could not be served. */
const fatal = 128;

/** See `GitServer.uploadPack`. */
export async function uploadPack(access: RepositoryAccess, repository: GitRepository, stream: GitStream): Promise<number> {
  try {
    const isV2 = stream.protocol.split(':').includes('version=2');
    await (isV2 ? serveFetchV2(access, repository, stream) : serveFetchV0(access, repository, stream));
    return 0;
  } catch (error) {
    if (stream.clientGone.aborted) return fatal;
    if (!(error instanceof GitFault || error instanceof PackStorageError)) throw error;
    await stream.write(encodePacket(`ERR ${error.message}\n`)).catch(() => undefined);
    return fatal;
  }
}
