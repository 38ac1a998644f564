import ssh2, { type ClientChannel } from 'ssh2';
import { ByteReader } from '#shared/byte-reader.ts';
import { flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import {
  encodeFetch,
  encodeRefQuestion,
  readGreeting,
  readPack,
  readRefAnswer,
  readTipsAnswer,
  tipsQuestion,
} from '#shared/sources/git-fetch.ts';
import type { GitUrl } from '#shared/sources/git-url.ts';
import type { GuardedRequestOptions } from '#shared/sources/guarded-request.ts';
import { noSuchRef } from '#shared/sources/no-such-ref.ts';
import type { FetchedSource, HostKey, RemoteTips, SourceRequest, TipsRequest } from '#shared/sources/source-hosts.ts';
import { connectToGitHost } from '#shared/sources/ssh-client.ts';

/** Creates the ed25519 key pair with which an app reads a private repository. */
export function createSourceKey(): { privateKey: string; publicKey: string } {
  const { private: privateKey, public: publicKey } = ssh2.utils.generateKeyPairSync('ed25519');
  return { privateKey, publicKey };
}

/** Fetches over SSH. @throws AppError validation_failed */
export async function fetchBySsh(asked: SourceRequest, at: GitUrl, options: GuardedRequestOptions): Promise<FetchedSource> {
  const { ref, haves } = asked;
  const { channel, reader, close, newHostKey } = await openUploadPack(asked, at, options);
  try {
    if (asked.commit === undefined) channel.write(encodeRefQuestion(ref));
    const commit = asked.commit ?? (await readRefAnswer(reader, ref));
    if (commit === undefined) throw noSuchRef(ref);
    channel.write(encodeFetch(commit, haves));
    return { commit, pack: thenClose(readPack(reader), channel, close), ...omitUndefined({ newHostKey }) };
  } catch (error) {
    close();
    throw error;
  }
}

/** Lists branches over SSH. @throws AppError validation_failed */
export async function listTipsBySsh(asked: TipsRequest, at: GitUrl, options: GuardedRequestOptions): Promise<RemoteTips> {
  const { channel, reader, close, newHostKey } = await openUploadPack(asked, at, options);
  try {
    channel.write(tipsQuestion);
    const tips = await readTipsAnswer(reader);
    channel.end(flushPacket);
    return { ...tips, ...omitUndefined({ newHostKey }) };
  } finally {
    close();
  }
}

interface UploadPack {
  channel: ClientChannel;
  reader: ByteReader;
  newHostKey: HostKey | undefined;
  close(): void;
}

/** Logs in and starts git-upload-pack, up to its greeting. */
async function openUploadPack(
  asked: Pick<SourceRequest, 'url' | 'key' | 'signal'>,
  at: GitUrl,
  options: GuardedRequestOptions,
): Promise<UploadPack> {
  const { run, newHostKey, close } = await connectToGitHost(asked, at, options);
  try {
    const channel = await run('git-upload-pack');
    const reader = new ByteReader(channel as AsyncIterable<Uint8Array>);
    await readGreeting(reader);
    return { channel, reader, close, newHostKey };
  } catch (error) {
    close();
    throw error;
  }
}

async function* thenClose(
  pack: AsyncIterable<Uint8Array>,
  channel: ClientChannel,
  close: () => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield* pack;
    channel.end(flushPacket);
  } finally {
    close();
  }
}
