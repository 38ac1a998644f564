import { jwtVerify, SignJWT } from 'jose';
import type { Clock } from '#shared/clock.ts';
import { AppError } from '#shared/errors.ts';

/** Signs calls between processes of one platform, and checks them. */
export interface CallTokens {
  /** A token for one call with this body. It is valid for a minute. */
  sign(path: string, body: string): Promise<string>;
  /** @throws AppError 'unauthorized' for a token of another platform, call or body, or one that has expired */
  verify(token: string, path: string, body: string): Promise<void>;
}

const audience = 'paas-internal';
const validSeconds = 60;
/** Clocks of two machines may differ by so much. */
const toleranceSeconds = 30;

/**
 * Tokens by a key that follows from the platform's secret key, so that every process of the platform has it. A token is bound to its
 * call and the body: whoever reads one can repeat that call for a minute, and nothing else.
 * @param masterKey 32 bytes
 */
export async function createCallTokens(masterKey: Uint8Array<ArrayBuffer>, clock: Pick<Clock, 'now'>): Promise<CallTokens> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const master = await crypto.subtle.importKey('raw', masterKey, algorithm, false, ['sign']);
  const key = new Uint8Array(await crypto.subtle.sign('HMAC', master, new TextEncoder().encode('paas internal calls')));
  return {
    async sign(path, body) {
      const now = Math.floor(clock.now().getTime() / 1000);
      return new SignJWT({ path, body: await digest(body) })
        .setProtectedHeader({ alg: 'HS256' })
        .setAudience(audience)
        .setIssuedAt(now)
        .setExpirationTime(now + validSeconds)
        .sign(key);
    },
    async verify(token, path, body) {
      const options = {
        algorithms: ['HS256'],
        audience,
        currentDate: clock.now(),
        clockTolerance: toleranceSeconds,
        requiredClaims: ['exp', 'path', 'body'],
      };
      const verified = await jwtVerify(token, key, options).catch(() => undefined);
      const { path: forPath, body: forBody } = verified?.payload ?? {};
      if (verified === undefined || forPath !== path || forBody !== (await digest(body)))
        throw new AppError('unauthorized', 'The call is not signed by a process of this platform.');
    },
  };
}

async function digest(text: string): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))).toBase64();
}
