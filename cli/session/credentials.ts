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
  /** Absent when the platform gave none: then a login ends with its access token. */
  readonly refresh_token?: string;
  /** ISO 8601. */
  readonly expires_at: string;
}

/** The credentials file. Hosts are base URLs without a trailing slash. */
export interface Credentials {
  /** The host of the last login: what is meant when nothing names another. */
  readonly current_host?: string;
  readonly hosts: Readonly<Record<string, Login>>;
}

export function credentialsPath(env: Readonly<Record<string, string | undefined>>): string {
  const configured = env['XDG_CONFIG_HOME'];
  // The XDG specification has relative paths ignored.
  const base = configured?.startsWith('/') === true ? configured : join(env['HOME'] ?? homedir(), '.config');
  return join(base, 'paas', 'credentials.json');
}

/** Reads and changes the credentials file: mode 600, replaced in one step, one writer at a time. */
export class CredentialStore {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Nothing is there before the first login. */
  async read(): Promise<Credentials> {
    let text: string;
    try {
      text = await readFile(this.path, 'utf8');
    } catch (error) {
      if (isMissing(error)) return { hosts: {} };
      throw new CliError(`Cannot read ${this.path}.`, {
        hint: 'Make it readable for you, or remove it and log in again.',
        cause: error,
      });
    }
    return this.#parse(text);
  }

  /** Makes of the present credentials what `change` answers; undefined leaves them as they are. Others wait meanwhile. */
  async update(change: (present: Credentials) => Promise<Credentials | undefined> | Credentials | undefined): Promise<void> {
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
      // Said below in words; the parser's message would quote the file.
    }
    throw new CliError(`${this.path} is not a credentials file of paas.`, { hint: 'Remove it and run `paas login`.' });
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
