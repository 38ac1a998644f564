import type { AuthContext, AuthenticationType, Connection, KeyboardAuthContext, PublicKeyAuthContext } from 'ssh2';
import type { Clock } from '#shared/clock.ts';
import type { SshKeys } from '#shared/core/accounts/accounts.ts';
import type { Principal } from '#shared/core/accounts/principals.ts';
import type { SshKeyId } from '#shared/ids.ts';
import type { Log } from '#shared/log.ts';
import { isSshKeyType, sshFingerprint } from '#shared/ssh-public-key.ts';
import { verifyLogin } from './login-signature.ts';

export type SshIdentity = Principal & { readonly keyId: SshKeyId; readonly fingerprint: string };

/** Who logged in, and with which raw key, so that the door can look again whether it is still registered. */
export interface Login {
  readonly identity: SshIdentity;
  readonly key: Uint8Array;
}

export interface Authentication {
  /** Of the signature that was accepted. Undefined before. */
  login(): Login | undefined;
  readonly failures: number;
}

interface AuthenticationOptions {
  readonly sshKeys: Pick<SshKeys, 'resolveKey'>;
  readonly attempts: number;
  readonly clock: Clock;
  readonly log: Log;
  /** How late this client's failures are answered. */
  delayMilliseconds(): number;
  /** Aborted when the client has gone. */
  readonly gone: AbortSignal;
  /** Ends the connection. */
  hangUp(): void;
}

const userName = 'git';

/**
 * The second method is not a way in: clients turn to it when no key was accepted, and it shows them why. OpenSSH prints
 * its instructions, asks nothing, and then says `Permission denied (publickey)`.
 */
const methods: AuthenticationType[] = ['publickey', 'keyboard-interactive'];

/**
 * Logs the client in by public key, and by nothing else.
 *
 * An offered key is never looked up: every offer of a usable type is answered "sign with it", so nobody learns whose
 * keys are registered. The identity is bound in the same step in which its signature was found good, and each new request
 * unbinds it first.
 */
export function authenticate(client: Connection, options: AuthenticationOptions): Authentication {
  let login: Login | undefined;
  let failures = 0;
  let requests = 0;
  const refused: string[] = [];
  let hint: string | undefined;

  const refuse = async (context: AuthContext): Promise<void> => {
    failures += 1;
    if (failures > options.attempts) return options.hangUp();
    const delay = options.delayMilliseconds();
    if (delay > 0) await options.clock.sleep(delay, options.gone);
    context.reject(failures === options.attempts ? ['keyboard-interactive'] : methods);
  };

  const decide = async (context: AuthContext): Promise<void> => {
    login = undefined;
    requests += 1;
    // Every client starts by asking which methods there are.
    if (context.method === 'none' && requests === 1) return context.reject(methods);
    if (context.method === 'keyboard-interactive') {
      await explain(context, context.username === userName ? (hint ?? keyHint(refused)) : userHint(context.username));
      failures += 1;
      if (failures > options.attempts) return options.hangUp();
      return context.reject(['publickey']);
    }
    if (context.method !== 'publickey' || context.username !== userName || !isSshKeyType(context.key.algo))
      return refuse(context);
    if (context.signature === undefined) return context.accept();
    if (!isSignedBy(context)) return refuse(context);

    const key = Uint8Array.from(context.key.data);
    const identity = await options.sshKeys.resolveKey(key).catch((error: unknown) => {
      options.log.error('ssh key lookup failed', { error });
      hint = 'Your key could not be looked up, through no fault of yours. Try again in a minute.';
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
      if (!options.gone.aborted) options.log.error('ssh authentication failed', { error });
      options.hangUp();
    });
  });

  return {
    login: () => login,
    get failures() {
      return failures;
    },
  };
}

function isSignedBy({ key, signature, blob, hashAlgo }: PublicKeyAuthContext): boolean {
  if (signature === undefined || blob === undefined) return false;
  return verifyLogin({ keyType: key.algo, key: key.data, signature, data: blob, rsaHash: hashAlgo });
}

/** Resolves when the client has acknowledged it; ssh2 drops the callback when the client asks for something else. */
function explain(context: KeyboardAuthContext, text: string): Promise<void> {
  return new Promise((resolve) => {
    context.prompt([], '', text, () => resolve());
  });
}

function userHint(name: string): string {
  return `Log in as git, not as ${JSON.stringify(name.slice(0, 40))}: the address of an app is ssh://git@<host>:<port>/<app>.git`;
}

function keyHint(refused: readonly string[]): string {
  if (refused.length === 0) {
    return [
      'You need an SSH key to push. Make one and register it:',
      '  ssh-keygen -t ed25519',
      '  paas keys:add ~/.ssh/id_ed25519.pub',
    ].join('\n');
  }
  return [
    refused.length === 1 ? 'Nobody has registered your SSH key here:' : 'Nobody has registered any of your SSH keys here:',
    ...refused.map((key) => `  ${key}`),
    'Register it with:',
    '  paas keys:add ~/.ssh/id_ed25519.pub',
    ...(refused.length < 5 ? [] : ['With many keys in your agent, offer the right one only: ssh -o IdentitiesOnly=yes -i <key>']),
  ].join('\n');
}
