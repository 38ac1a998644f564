import { z } from 'zod';
import { AppError } from '#shared/errors.ts';
import { parseJson } from '#shared/parse-json.ts';
import { readAtMost } from '#shared/read-at-most.ts';
import type { GitUrl } from '#shared/sources/git-url.ts';
import type { GuardedRequestOptions } from '#shared/sources/guarded-request.ts';
import { headersSchema, type LargeFileServer } from '#shared/sources/lfs-batch.ts';
import type { LargeFilesRequest } from '#shared/sources/source-hosts.ts';
import { connectToGitHost } from '#shared/sources/ssh-client.ts';

const mostAnswerBytes = 64 * 1024;
const answerSchema = z.object({ href: z.url({ protocol: /^https?$/ }), header: headersSchema.nullish() });

/**
 * Asks a git host over SSH for its Git LFS server, and for credentials there:
 * https://github.com/git-lfs/git-lfs/blob/main/docs/api/server-discovery.md
 * @throws AppError validation_failed
 */
export async function authenticateForLfs(
  asked: Pick<LargeFilesRequest, 'url' | 'key' | 'signal'>,
  at: GitUrl,
  options: GuardedRequestOptions,
): Promise<LargeFileServer> {
  const { run, close } = await connectToGitHost(asked, at, options);
  try {
    const bytes = await readAtMost(await run('git-lfs-authenticate', 'download'), mostAnswerBytes);
    const answer = answerSchema.safeParse(parseJson(bytes?.toString() ?? ''));
    if (!answer.success) throw fault(at.host);
    const { href, header } = answer.data;
    return {
      endpoint: href.replace(/\/+$/, ''),
      credentials: { origin: new URL(href).origin, headers: header ?? {} },
      hint: ": the app's deploy key may not read its large files",
    };
  } finally {
    close();
  }
}

function fault(host: string): AppError {
  const message = `${host} does not offer Git LFS over SSH to the app's deploy key. Give the source its https address, with a token: paas git:source:set URL --token`;
  return new AppError('validation_failed', `${message}.`);
}
