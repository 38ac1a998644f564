import { readAppById } from '#shared/core/apps/apps-store.ts';
import { completionKey } from '#shared/core/builds/build-attempt.ts';
import { takeSourceAgain } from '#shared/core/builds/build-source.ts';
import {
  type BuildTokenPurpose,
  type BuildTokenRow,
  hasBuildToken,
  useBuildToken,
} from '#shared/core/builds/build-tokens-store.ts';
import type { PipelineAccess } from '#shared/core/builds/builds.ts';
import { readBuildById } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { AppError } from '#shared/errors.ts';
import { type BuildId, isUuid } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import { hashSecretToken } from '#shared/secret-token.ts';
import { writeTar } from '#shared/sources/tar-writer.ts';

/** What a build asks of the control plane with its own token. */
export function createPipelineAccess(context: Context): PipelineAccess {
  const { db, clock, platform, wakeups } = context;
  return {
    async openSource(buildId, token) {
      const row = await nameToken(buildId, token, 'source');
      if (row === undefined || !(await useBuildToken(db, row, clock.now()))) throw wrongToken();
      const build = await readBuildById(db, row.build_id);
      const app = build && (await readAppById(db, build.app_id));
      if (build?.status !== 'running' || app === undefined) throw wrongToken();
      const source = await takeSourceAgain({
        context,
        app,
        build,
        line: () => undefined,
        signal: AbortSignal.timeout(limits.build.seconds * 1000),
      });
      return streamOf(writeTar(source.open()), () => source.close());
    },

    async reportCompletion(buildId, token) {
      const row = await nameToken(buildId, token, 'callback');
      if (row === undefined || !(await hasBuildToken(db, row, clock.now()))) throw wrongToken();
      await platform.builds.checkBuild(row.build_id);
      // Whoever watches it may be another process.
      wakeups.wake(completionKey(row.build_id));
    },
  };
}

async function nameToken(buildId: string, token: string, purpose: BuildTokenPurpose): Promise<BuildTokenRow | undefined> {
  return isUuid(buildId) ? { build_id: buildId as BuildId, token_hash: await hashSecretToken(token), purpose } : undefined;
}

function wrongToken(): AppError {
  return new AppError('unauthorized', 'The token is not valid for this build. It may have expired, or have been used before.');
}

/** A stream that pulls from `chunks`, and calls `close` once, when it is read to its end, fails or is canceled. */
function streamOf(
  chunks: AsyncGenerator<Uint8Array<ArrayBuffer>>,
  close: () => Promise<void>,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      try {
        const next = await chunks.next();
        if (next.done !== true) return controller.enqueue(next.value);
        await close();
        controller.close();
      } catch (error) {
        await close().catch(() => undefined);
        controller.error(error);
      }
    },
    async cancel() {
      await chunks.return(undefined);
      await close();
    },
  });
}
