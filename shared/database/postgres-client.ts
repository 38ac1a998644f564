import { dirname } from 'node:path';
import { TLSSocket } from 'node:tls';
import pg from 'pg';
import { reachableSocketPath } from '#shared/net/unix-socket.ts';

/**
 * How a PostgreSQL server may ask for the password. SCRAM never sends it, and proves that the server knows it too.
 * - `scram`: by SCRAM only.
 * - `tls`: also in other ways, to a server whose TLS certificate was verified.
 * - `any`: also in other ways, to whoever answers.
 */
export type DatabaseAuthentication = 'scram' | 'tls' | 'any';

/** Settings of a {@link PostgresClient}. */
export interface PostgresClientConfig extends pg.ClientConfig {
  /** By default `scram`. */
  authentication?: DatabaseAuthentication;
}

/** A server asked for the password in a way that is not allowed. Nothing was sent to it. */
export class DatabaseAuthenticationError extends Error {}

interface Connection extends NodeJS.EventEmitter {
  readonly stream: NodeJS.EventEmitter & { destroy(): void };
}

/** What pg does not document; see docs/private-internals.md. */
interface PgInternals {
  host: string;
  readonly password: unknown;
  readonly connection: Connection;
  saslSession: unknown;
  _attachListeners(connection: Connection): void;
  _handleAuthCleartextPassword(message: unknown): void;
  _handleAuthMD5Password(message: unknown): void;
  _handleAuthSASLFinal(message: unknown): void;
  _handleReadyForQuery(message: unknown): void;
}

/** Methods of pg's client that {@link PostgresClient} replaces: without one of them a server could ask for the password. */
export const replacedMethods = [
  '_attachListeners',
  '_handleAuthCleartextPassword',
  '_handleAuthMD5Password',
  '_handleAuthSASLFinal',
  '_handleReadyForQuery',
] as const;

const inherited = pg.Client.prototype as unknown as PgInternals;

/**
 * pg's client for every connection of the platform: it refuses a server that asks for the password other than by SCRAM. Whoever takes the
 * place of a server that is down would be sent the password otherwise. `connect` rejects with a `DatabaseAuthenticationError`.
 * A unix socket (`?host=/directory` in the URL) may have a path of any length.
 */
export class PostgresClient extends pg.Client {
  readonly #authentication: DatabaseAuthentication;
  #serverProved = false;
  #refused = false;

  constructor(config: string | PostgresClientConfig = {}) {
    super(config);
    this.#authentication = (typeof config === 'string' ? undefined : config.authentication) ?? 'scram';
    if (this.host.startsWith('/'))
      (this as unknown as PgInternals).host = dirname(reachableSocketPath(`${this.host}/.s.PGSQL.${this.port}`));
  }

  _attachListeners(connection: Connection): void {
    inherited._attachListeners.call(this as unknown as PgInternals, connection);
    connection.on('authenticationOk', () => {
      // Without a password nothing is at stake: the server knows the user by other means.
      const { password } = this as unknown as PgInternals;
      if (!this.#serverProved && password !== null && password !== undefined && password !== '')
        this.#allow('accepts the connection without a password');
    });
  }

  _handleAuthCleartextPassword(message: unknown): void {
    if (this.#allow('asks for the password in clear'))
      inherited._handleAuthCleartextPassword.call(this as unknown as PgInternals, message);
  }

  _handleAuthMD5Password(message: unknown): void {
    if (this.#allow('asks for an MD5 hash of the password'))
      inherited._handleAuthMD5Password.call(this as unknown as PgInternals, message);
  }

  _handleAuthSASLFinal(message: unknown): void {
    const internals = this as unknown as PgInternals;
    inherited._handleAuthSASLFinal.call(internals, message);
    // pg forgets the session once the signature of the server was right.
    this.#serverProved = internals.saslSession === null;
  }

  _handleReadyForQuery(message: unknown): void {
    if (!this.#refused) inherited._handleReadyForQuery.call(this as unknown as PgInternals, message);
  }

  /** False once the connection was refused for what the server does. */
  #allow(whatItDoes: string): boolean {
    const { connection } = this as unknown as PgInternals;
    const { stream } = connection;
    const verified = stream instanceof TLSSocket && stream.authorized;
    if (this.#authentication === 'any' || (this.#authentication === 'tls' && verified)) return true;
    this.#refused = true;
    const allowed = this.#authentication === 'tls' ? 'SCRAM, or a verified TLS connection,' : 'SCRAM';
    connection.emit(
      'error',
      new DatabaseAuthenticationError(
        `The database server ${whatItDoes}, but ${allowed} is required. The password was not sent.`,
      ),
    );
    stream.destroy();
    return false;
  }
}
