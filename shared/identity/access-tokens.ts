import { type CryptoKey, decodeProtectedHeader, errors, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { Clock } from '#shared/clock.ts';
import { secondsPerHour } from '#shared/durations.ts';
import { AppError } from '#shared/errors.ts';
import type { IdentityUser, TokenSubject } from '#shared/identity/identity.ts';
import type { VerifiedToken } from '#shared/identity/verified-tokens.ts';
import { newUuid, type SessionId, type UserId } from '#shared/ids.ts';

/** Lifetime of an access token. */
export const accessTokenSeconds = secondsPerHour;
/** The only accepted `alg` (RFC 7518 §3.4). */
export const signingAlgorithm = 'ES256';
const tokenType = 'at+jwt';
const audience = 'paas';
const clockToleranceSeconds = 5;
const longestToken = 4096;

/** A private key that signs access tokens. */
export interface SigningKey {
  /** RFC 7638 thumbprint. */
  id: string;
  privateKey: CryptoKey;
}

/** The keys that sign and verify access tokens. */
export interface KeyRing {
  /** The key that signs now. */
  current(): Promise<SigningKey>;
  /** The public key with this id. A retired key is returned as long as its tokens can be valid. */
  find(id: string): Promise<CryptoKey | undefined>;
}

/** Whom a token is for. */
export interface TokenOwner {
  user: IdentityUser;
  /** `sid`. */
  sessionId: SessionId;
}

/** Signs an access token (RFC 9068) that is valid for `accessTokenSeconds`. */
export async function issueAccessToken(
  { user, sessionId }: TokenOwner,
  issuer: string,
  keys: KeyRing,
  clock: Clock,
): Promise<string> {
  const { id, privateKey } = await keys.current();
  const issuedAt = Math.floor(clock.now().getTime() / 1000);
  return new SignJWT({ email: user.email, client_id: audience, sid: sessionId })
    .setProtectedHeader({ alg: signingAlgorithm, typ: tokenType, kid: id })
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject(user.id)
    .setJti(newUuid())
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + accessTokenSeconds)
    .sign(privateKey);
}

/**
 * Verifies an access token. Algorithm, type, issuer and audience are fixed and never taken from the token; its `kid` only
 * selects one of the known keys.
 * @throws AppError unauthorized for anything but an unexpired token of `issuer`
 */
export async function verifyAccessToken(token: string, issuer: string, keys: KeyRing, clock: Clock): Promise<VerifiedToken> {
  try {
    const key = await keys.find(readKeyId(token));
    if (key === undefined) throw new Error('signed by an unknown key');
    const { payload } = await jwtVerify(token, key, {
      algorithms: [signingAlgorithm],
      typ: tokenType,
      issuer,
      audience,
      clockTolerance: clockToleranceSeconds,
      requiredClaims: ['sub', 'jti', 'iat', 'exp', 'email'],
      currentDate: clock.now(),
    });
    return { subject: toSubject(payload), expires: payload.exp ?? 0 };
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    const message =
      cause instanceof errors.JWTExpired
        ? 'The access token has expired. Refresh it, or log in again.'
        : 'The access token is not valid. Log in again.';
    throw new AppError('unauthorized', message, { cause });
  }
}

/** Cheap checks that come before the signature is verified. */
function readKeyId(token: string): string {
  if (token.length > longestToken) throw new Error('the token is too long');
  const { alg, kid } = decodeProtectedHeader(token);
  if (alg !== signingAlgorithm) throw new Error('unexpected algorithm');
  if (typeof kid !== 'string' || !/^[A-Za-z0-9_-]{43}$/.test(kid)) throw new Error('malformed key id');
  return kid;
}

function toSubject({ sub, jti, email, sid }: JWTPayload): TokenSubject {
  if (typeof sub !== 'string' || typeof jti !== 'string' || typeof email !== 'string') throw new Error('a claim is not a string');
  // Tokens of the version before have no session.
  const session = typeof sid === 'string' ? { sessionId: sid as SessionId } : {};
  return { id: sub as UserId, email, tokenId: jti, ...session };
}
