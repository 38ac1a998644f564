import type { Clock } from '#shared/clock.ts';
import type { Db } from '#shared/database/db.ts';
import { addSeconds, secondsPerDay, secondsPerMinute } from '#shared/durations.ts';
import { accessTokenSeconds } from '#shared/identity/access-tokens.ts';
import { createPostgresLoginAttempts } from '#shared/identity/embedded/postgres-login-attempts.ts';
import { createPostgresRefreshTokens } from '#shared/identity/embedded/postgres-refresh-tokens.ts';
import { createPostgresSigningKeys } from '#shared/identity/embedded/postgres-signing-keys.ts';
import { createPostgresUsers } from '#shared/identity/embedded/postgres-users.ts';
import { deleteEndedSessions } from '#shared/identity/ended-sessions-store.ts';
import { createPasswordIdentity, type PasswordHasher, type PasswordIdentity } from '#shared/identity/password-identity.ts';
import type { SecretBox } from '#shared/secret-box.ts';

/** Dependencies of {@link createEmbeddedIdentity}. */
export interface EmbeddedIdentityOptions {
  db: Db;
  secrets: SecretBox;
  clock: Clock;
  /** See issuer.ts. Tokens of another issuer are refused, so users must log in again after the base URL has changed. */
  issuer: string;
  hasher: PasswordHasher;
}

/** An issuer of our own on PostgreSQL. Any number of processes may share the database. */
export function createEmbeddedIdentity({ db, secrets, clock, issuer, hasher }: EmbeddedIdentityOptions): PasswordIdentity {
  return createPasswordIdentity({
    users: createPostgresUsers(db),
    refreshTokens: createPostgresRefreshTokens(db),
    signingKeys: createPostgresSigningKeys(db, secrets),
    loginAttempts: createPostgresLoginAttempts(db),
    hasher,
    clock,
    issuer,
  });
}

/** Removes refresh tokens that expired more than a day ago, and ended sessions without valid access tokens. @returns how many */
export async function sweepRefreshTokens(db: Db, clock: Clock): Promise<number> {
  const dayAgo = addSeconds(clock.now(), -secondsPerDay);
  const result = await db.deleteFrom('refresh_tokens').where('expires_at', '<', dayAgo).executeTakeFirst();
  const ended = await deleteEndedSessions(db, addSeconds(clock.now(), -accessTokenSeconds - secondsPerMinute));
  return Number(result.numDeletedRows) + ended;
}
