import type { AuthContext, AuthenticationType, Connection, KeyboardAuthContext, PublicKeyAuthContext } from 'ssh2';
import type { Clock } from '#shared/clock.ts';
import type { SshKeys } from '#shared/core/accounts/accounts.ts';
import type { Principal } from '#shared/core/accounts/principals.ts';
import type { SshKeyId } from '#shared/ids.ts';
import type { Log } from '#shared/log.ts';
import { isSshKeyType, sshFingerprint } from '#shared/ssh-public-key.ts';
import { keyHint, lookupFailedHint, userNameHint } from './login-hints.ts';
import { verifyLoginSignature } from './login-signature.ts';

/** The owner of a registered key. */
export type SshIdentity = Principal & { readonly keyId: SshKeyId; readonly fingerprint: string };

/** An accepted login. */
export interface Login {
  readonly identity: SshIdentity;
  /** The raw public key, by which each command checks again that the key is still registered. */
  readonly key: Uint8Array;
}

/** The state of one connection's login. */
export interface Authentication {
  /** Undefined until a signature was accepted. */
  login(): Login | undefined;
  /** Refused requests so far. */
  readonly failures: number;
}

export interface AuthenticationOptions {
  readonly sshKeys: Pick<SshKeys, 'resolveKey'>;
  /** Refused requests after which the connection is closed. */
  readonly attempts: number;
  readonly clock: Clock;
  readonly log: Log;
  /** How long the answer to a failed attempt is delayed. */
  delayMilliseconds(): number;
  /** Aborted when the client has disconnected. */
  readonly clientGone: AbortSignal;
  /** Closes the connection. */
  disconnect(): void;
}

/** The only SSH user name: the key says who the person is. */
const userName = 'git';

/**
 * Nobody gets in by keyboard-interactive: clients try it when no key was accepted, and it shows them why. OpenSSH prints
 * the instructions, has nothing to ask, and then prints `Permission denied (publickey)`.
 */
const methods: AuthenticationType[] = ['publickey', 'keyboard-interactive'];

/**
 * Logs a client in by public key, the only method (RFC 4252 §7).
 *
 * A key that is merely offered is never looked up: every offer of a supported type is accepted for signing, so that nobody
 * can find out which keys are registered. The identity is set in the same step that verified its signature, and each new
 * request clears it first.
 */
export function authenticate(client: Connection, options: AuthenticationOptions): Authentication {
  let login: Login | undefined;
  let failures = 0;
  let requests = 0;
  const refused: string[] = [];
  let lookupFailed = false;

  const refuse = async (context: AuthContext): Promise<void> => {
    failures += 1;
    if (failures > options.attempts) return options.disconnect();
    const delay = options.delayMilliseconds();
    if (delay > 0) await options.clock.sleep(delay, options.clientGone);
    context.reject(failures === options.attempts ? ['keyboard-interactive'] : methods);
  };

  const explain = async (context: KeyboardAuthContext): Promise<void> => {
    const keyProblem = lookupFailed ? lookupFailedHint : keyHint(refused);
    await showInstructions(context, context.username === userName ? keyProblem : userNameHint(context.username));
    failures += 1;
    if (failures > options.attempts) return options.disconnect();
    context.reject(['publickey']);
  };

  const decide = async (context: AuthContext): Promise<void> => {
    login = undefined;
    requests += 1;
    // Clients begin with `none` to learn which methods there are.
    if (context.method === 'none' && requests === 1) return context.reject(methods);
    if (context.method === 'keyboard-interactive') return explain(context);
    if (context.method !== 'publickey' || context.username !== userName || !isSshKeyType(context.key.algo))
      return refuse(context);
    if (context.signature === undefined) return context.accept();
    if (!isSigned(context)) return refuse(context);

    const key = Uint8Array.from(context.key.data);
    const identity = await options.sshKeys.resolveKey(key).catch((error: unknown) => {
      options.log.error('ssh key lookup failed', { error });
      lookupFailed = true;
      return undefined;
    });
    if (identity === undefined) {
      refused.push(await sshFingerprint(key));
      return refuse(context);
    }
    login = { identity, key };
    context.accept();
  };

  client.on('authentication', (context) => {
    decide(context).catch((error: unknown) => {
      if (!options.clientGone.aborted) options.log.error('ssh authentication failed', { error });
      options.disconnect();
    });
  });

  return {
    login: () => login,
    get failures() {
      return failures;
    },
  };
}

function isSigned({ key, signature, blob, hashAlgo }: PublicKeyAuthContext): boolean {
  if (signature === undefined || blob === undefined) return false;
  return verifyLoginSignature({ keyType: key.algo, key: key.data, signature, data: blob, rsaHash: hashAlgo });
}

/** Resolves when the client has acknowledged the text. ssh2 drops the callback when the client sends another request. */
function showInstructions(context: KeyboardAuthContext, text: string): Promise<void> {
  return new Promise((resolve) => {
    context.prompt([], '', text, () => resolve());
  });
}
