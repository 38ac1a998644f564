import { connect, type Socket } from 'node:net';
import ssh2, { type Client, type ClientChannel } from 'ssh2';
import { ByteReader } from '#shared/byte-reader.ts';
import { AppError } from '#shared/errors.ts';
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
import { resolveHost } from '#shared/sources/resolve-host.ts';
import type { FetchedSource, HostKey, RemoteTips, SourceRequest, TipsRequest } from '#shared/sources/source-hosts.ts';
import { SourceUnavailable } from '#shared/sources/source-unavailable.ts';

const readyMilliseconds = 20_000;

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
  { url, key, signal }: Pick<SourceRequest, 'url' | 'key' | 'signal'>,
  at: GitUrl,
  options: GuardedRequestOptions,
): Promise<UploadPack> {
  if (key === undefined) throw fault('The app has no deploy key yet: GET /v1/apps/<app>/git creates one. Add it at the git host');
  const { address } = await resolveHost(at.host, options.lookUp, options.allowPrivate);
  const host = `${at.host}:${at.port === '' ? 22 : at.port}`;
  let shown = '';
  const isExpected = (hostKey: Buffer): boolean => {
    shown = hostKey.toString('base64');
    return key.hostKeys[host] === undefined || key.hostKeys[host] === shown;
  };
  const socket = connect({ host: address, port: at.port === '' ? 22 : Number(at.port) });
  const client = new ssh2.Client();
  // Until the client takes the socket over, nothing else handles its errors.
  socket.on('error', () => undefined);
  const close = (): void => {
    client.destroy();
    socket.destroy();
  };
  signal.addEventListener('abort', close, { once: true });
  try {
    await logIn(client, socket, at, key.privateKey, isExpected).catch((error: unknown) => {
      signal.throwIfAborted();
      throw explain(error, host, shown !== '' && !isExpected(Buffer.from(shown, 'base64')));
    });
    // `host:path` is relative to the user's home directory. parseGitUrl rejects paths with quotes.
    const root = url.includes('://') ? '/' : '';
    const channel = await run(client, `git-upload-pack '${root}${at.path}'`);
    const reader = new ByteReader(channel as AsyncIterable<Uint8Array>);
    await readGreeting(reader);
    return { channel, reader, close, newHostKey: key.hostKeys[host] === undefined ? { host, key: shown } : undefined };
  } catch (error) {
    close();
    throw error;
  }
}

function logIn(
  client: Client,
  sock: Socket,
  at: GitUrl,
  privateKey: string,
  isExpected: (key: Buffer) => boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    client.on('ready', resolve);
    // Needed after 'ready' too: an unhandled 'error' event ends the process.
    client.on('error', reject);
    client.on('close', () => reject(new Error('the connection was closed')));
    const username = at.user === '' ? 'git' : at.user;
    client.connect({ sock, username, privateKey, hostVerifier: isExpected, readyTimeout: readyMilliseconds });
  });
}

function run(client: Client, command: string): Promise<ClientChannel> {
  return new Promise((resolve, reject) => {
    client.exec(command, { env: { GIT_PROTOCOL: 'version=2' } }, (error, channel) => {
      if (error !== undefined) return reject(fault('The git host refused to run git for this key', error));
      // Git's messages on stderr are not shown; the missing greeting is reported instead.
      channel.stderr.resume();
      resolve(channel);
    });
  });
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

function explain(error: unknown, host: string, keyChanged: boolean): AppError {
  if (keyChanged)
    return fault(
      `The host key of ${host} has changed. If that was intended, set the source again: paas git:source:set URL`,
      error,
    );
  const { level, code, message } = error as Error & { level?: string; code?: string };
  return level === 'client-authentication'
    ? fault(`${host} rejected the app's deploy key. Add the key that \`paas git:source\` shows to the repository`, error)
    : new SourceUnavailable(`${host} could not be reached (${code ?? message}).`, error);
}

function fault(message: string, cause?: unknown): AppError {
  return new AppError('validation_failed', `${message}.`, { cause });
}
