import { type CryptoKey, decodeProtectedHeader, errors, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { Clock } from '#shared/clock.ts';
import { AppError } from '#shared/errors.ts';
import type { IdentityUser, TokenSubject } from '#shared/identity/identity.ts';
import type { VerifiedToken } from '#shared/identity/verified-tokens.ts';
import { newUuid, type UserId } from '#shared/ids.ts';

export const accessTokenSeconds = 3600;
export const signingAlgorithm = 'ES256';
const tokenType = 'at+jwt';
const audience = 'paas';
const clockToleranceSeconds = 5;
const longestToken = 4096;

export interface SigningKey {
  /** RFC 7638 thumbprint. */
  id: string;
  privateKey: CryptoKey;
}

/** Keys that sign and verify. */
export interface KeyRing {
  current(): Promise<SigningKey>;
  /** The public key named `id`, also a retired one as long as tokens of it can be valid. */
  find(id: string): Promise<CryptoKey | undefined>;
}

/** Signs a token in the shape of RFC 9068, valid for an hour. */
export async function issueAccessToken(user: IdentityUser, issuer: string, keys: KeyRing, clock: Clock): Promise<string> {
  const { id, privateKey } = await keys.current();
  const issuedAt = Math.floor(clock.now().getTime() / 1000);
  return new SignJWT({ email: user.email, client_id: audience })
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
 * Algorithm, type, issuer and audience are ours to say, never the token's; its `kid` only picks among our own keys.
 * Throws `unauthorized` for anything but an unexpired token of `issuer`.
 */
export async function verifyAccessToken(token: string, issuer: string, keys: KeyRing, clock: Clock): Promise<VerifiedToken> {
  try {
    const key = await keys.find(readKeyId(token));
    if (key === undefined) throw new Error('signed by a key that is not ours');
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

/** Before anything is verified: cheap refusals first. */
function readKeyId(token: string): string {
  if (token.length > longestToken) throw new Error('longer than any token of ours');
  const { alg, kid } = decodeProtectedHeader(token);
  if (alg !== signingAlgorithm) throw new Error('not our algorithm');
  if (typeof kid !== 'string' || !/^[A-Za-z0-9_-]{43}$/.test(kid)) throw new Error('not a key id of ours');
  return kid;
}

function toSubject({ sub, jti, email }: JWTPayload): TokenSubject {
  if (typeof sub !== 'string' || typeof jti !== 'string' || typeof email !== 'string') throw new Error('a claim is no text');
  return { id: sub as UserId, email, tokenId: jti };
}
