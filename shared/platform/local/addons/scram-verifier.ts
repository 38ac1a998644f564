import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

const iterations = 4096;
const keyBytes = 32;

/**
 * The verifier that PostgreSQL stores for a password (RFC 5803). It is made here so that no statement, and so no log, contains the
 * password.
 * @param password ASCII only: no other text is prepared as the protocol requires
 */
export async function scramVerifier(password: string, salt: Buffer = randomBytes(16)): Promise<string> {
  const salted = await promisify(pbkdf2)(password, salt, iterations, keyBytes, 'sha256');
  const hmac = (text: string): Buffer => createHmac('sha256', salted).update(text).digest();
  const storedKey = createHash('sha256').update(hmac('Client Key')).digest('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${hmac('Server Key').toString('base64')}`;
}
