import { connect, type Socket } from 'node:net';
import ssh2, { type Client, type ClientChannel } from 'ssh2';
import { AppError } from '#shared/errors.ts';
import type { GitUrl } from '#shared/sources/git-url.ts';
import type { GuardedRequestOptions } from '#shared/sources/guarded-request.ts';
import { resolveHost } from '#shared/sources/resolve-host.ts';
import type { HostKey, SourceKey } from '#shared/sources/source-hosts.ts';
import { SourceUnavailable } from '#shared/sources/source-unavailable.ts';

const readyMilliseconds = 20_000;

/** A connection to a git host, logged in. */
export interface GitHostConnection {
  /** Starts a command of git. The path of the repository is appended in quotes. */
  run(command: string, ...args: readonly string[]): Promise<ClientChannel>;
  /** The key that the host showed, if it was not known. */
  newHostKey: HostKey | undefined;
  close(): void;
}

/**
 * Logs in with the deploy key, at an address that was checked.
 * @param asked.url the address as it was written, which `at` was parsed from
 * @throws AppError validation_failed
 */
export async function connectToGitHost(
  { url, key, signal }: { url: string; key?: SourceKey | undefined; signal: AbortSignal },
  at: GitUrl,
  options: GuardedRequestOptions,
): Promise<GitHostConnection> {
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
  } catch (error) {
    close();
    throw error;
  }
  // `host:path` is relative to the user's home directory. parseGitUrl rejects paths with quotes.
  const root = url.includes('://') ? '/' : '';
  return {
    run: (command, ...args) => run(client, [command, `'${root}${at.path}'`, ...args].join(' ')),
    newHostKey: key.hostKeys[host] === undefined ? { host, key: shown } : undefined,
    close,
  };
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
