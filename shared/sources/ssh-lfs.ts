import type { ClientChannel } from 'ssh2';
import { z } from 'zod';
import { AppError } from '#shared/errors.ts';
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
    const answer = answerSchema.safeParse(await readJson(await run('git-lfs-authenticate', 'download')));
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

async function readJson(channel: ClientChannel): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of channel as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostAnswerBytes) return undefined;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return undefined;
  }
}

function fault(host: string): AppError {
  const message = `${host} does not offer Git LFS over SSH to the app's deploy key. Give the source its https address, with a token: paas git:source:set URL --token`;
  return new AppError('validation_failed', `${message}.`);
}
