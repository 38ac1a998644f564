import { AppError } from '#shared/errors.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import type { Quarantine } from '#shared/git/packs/files/quarantine.ts';

/**
 * Runs `take` on a pack that was fetched from another host. When that fails, the quarantine is cleared.
 * @throws AppError validation_failed, for the app's owner, when the pack is invalid; what reading `pack` throws, as it is
 */
export async function takeFetchedPack<Taken>(
  quarantine: Quarantine,
  pack: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  take: (input: AsyncIterator<Uint8Array>) => Promise<Taken>,
): Promise<Taken> {
  const input = rememberFailure(pack);
  try {
    return await take(input.chunks);
  } catch (error) {
    await quarantine.clear();
    signal.throwIfAborted();
    // A pack that ends early is reported as invalid, but the failure that ended it is the cause.
    if (input.failure() !== undefined) throw input.failure();
    if (!(error instanceof GitFault)) throw error;
    throw new AppError('validation_failed', `The repository cannot be used: ${error.message}.`, { cause: error });
  }
}

/** The same chunks. Keeps the error of the sender, which a worker thread would not pass on. */
function rememberFailure(pack: AsyncIterable<Uint8Array>): { chunks: AsyncIterator<Uint8Array>; failure(): unknown } {
  let failure: unknown;
  const read = async function* () {
    try {
      yield* pack;
    } catch (error) {
      failure = error;
      throw error;
    }
  };
  return { chunks: read(), failure: () => failure };
}
