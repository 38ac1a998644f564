import { AppError } from '#shared/errors.ts';

/** Encrypts secrets at rest: AES-256-GCM by WebCrypto, with a key that is stored outside the database. */
export interface SecretBox {
  /** @param purpose bound to the ciphertext: text sealed for one purpose cannot be opened for another */
  seal(plaintext: string, purpose: string): Promise<string>;
  /** @throws AppError internal if the text was altered, or sealed with another key or for another purpose */
  open(sealed: string, purpose: string): Promise<string>;
}

const prefix = 'v1.';
const nonceBytes = 12;

/** @param key 32 bytes */
export async function createSecretBox(key: Uint8Array<ArrayBuffer>): Promise<SecretBox> {
  const imported = await crypto.subtle.importKey('raw', key, 'AES-GCM', false, ['encrypt', 'decrypt']);
  const parameters = (nonce: Uint8Array<ArrayBuffer>, purpose: string) => ({
    name: 'AES-GCM',
    iv: nonce,
    additionalData: new TextEncoder().encode(purpose),
  });
  return {
    async seal(plaintext, purpose) {
      const nonce = crypto.getRandomValues(new Uint8Array(nonceBytes));
      const sealed = await crypto.subtle.encrypt(parameters(nonce, purpose), imported, new TextEncoder().encode(plaintext));
      return `${prefix}${nonce.toBase64()}.${new Uint8Array(sealed).toBase64()}`;
    },
    async open(sealed, purpose) {
      try {
        const [nonce, content] = sealed.slice(prefix.length).split('.');
        if (!sealed.startsWith(prefix) || nonce === undefined || content === undefined) throw new Error('not a sealed text');
        const opened = await crypto.subtle.decrypt(
          parameters(Uint8Array.fromBase64(nonce), purpose),
          imported,
          Uint8Array.fromBase64(content),
        );
        return new TextDecoder().decode(opened);
      } catch (cause) {
        throw new AppError('internal', 'A stored secret could not be read.', { cause });
      }
    },
  };
}
