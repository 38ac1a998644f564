import { mkdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { CliError } from '#cli/errors/cli-error.ts';
import { withFileLock } from '#shared/files/file-lock.ts';
import { isMissing } from '#shared/files/if-missing.ts';
import { replaceFile } from '#shared/files/replace-file.ts';

/** A login at one platform. */
export interface Login {
  readonly email: string;
  readonly access_token: string;
  /** Without it, the login ends when the access token expires. */
  readonly refresh_token?: string;
  /** ISO 8601. */
  readonly expires_at: string;
}

/** The content of the credentials file. Hosts are base URLs without a trailing slash. */
export interface Credentials {
  /** The host of the last login, which is the default. */
  readonly current_host?: string;
  readonly hosts: Readonly<Record<string, Login>>;
}

/** Path of the credentials file, by the XDG Base Directory Specification. */
export function credentialsPath(env: Readonly<Record<string, string | undefined>>): string {
  const configured = env['XDG_CONFIG_HOME'];
  // The specification says to ignore relative paths.
  const base = configured?.startsWith('/') === true ? configured : join(env['HOME'] ?? homedir(), '.config');
  return join(base, 'paas', 'credentials.json');
}

/** Reads and changes the credentials file. The file has mode 600, is replaced atomically, and has one writer at a time. */
export class CredentialStore {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Without hosts before the first login. @throws CliError if the file cannot be read or is not valid */
  async read(): Promise<Credentials> {
    let text: string;
    try {
      text = await readFile(this.path, 'utf8');
    } catch (error) {
      if (isMissing(error)) return { hosts: {} };
      throw new CliError(`Cannot read ${this.path}.`, {
        hint: 'Make the file readable, or remove it and log in again.',
        cause: error,
      });
    }
    return this.#parse(text);
  }

  /** Stores the credentials that `change` returns. Undefined changes nothing. Other processes wait until it is done. */
  async update(change: (current: Credentials) => Promise<Credentials | undefined> | Credentials | undefined): Promise<void> {
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
    await withFileLock(`${this.path}.lock`, 60, async () => {
      const next = await change(await this.read());
      if (next !== undefined) await replaceFile(this.path, `${JSON.stringify(next, null, 2)}\n`, 0o600);
    });
  }

  #parse(text: string): Credentials {
    try {
      const value: unknown = JSON.parse(text);
      if (isCredentials(value)) return value;
    } catch {
      // The message of the parser would quote the file.
    }
    throw new CliError(`${this.path} is not a valid credentials file.`, { hint: 'Remove the file and run `paas login`.' });
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isLogin(value: unknown): value is Login {
  return (
    isRecord(value) &&
    typeof value['email'] === 'string' &&
    typeof value['access_token'] === 'string' &&
    (value['refresh_token'] === undefined || typeof value['refresh_token'] === 'string') &&
    typeof value['expires_at'] === 'string' &&
    !Number.isNaN(Date.parse(value['expires_at']))
  );
}

function isCredentials(value: unknown): value is Credentials {
  return (
    isRecord(value) &&
    (value['current_host'] === undefined || typeof value['current_host'] === 'string') &&
    isRecord(value['hosts']) &&
    Object.values(value['hosts']).every(isLogin)
  );
}
