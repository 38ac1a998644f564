import type { PublicKey } from '#shared/core/accounts/public-key.ts';
import { AppError } from '#shared/errors.ts';
import type { UserId } from '#shared/ids.ts';
import { verifySshSignature } from '#shared/ssh-signature.ts';

const namespace = 'paas';

/** The text that proves, signed by a key, that its holder wants it in this account of this platform. */
export function keyProofText(userId: UserId, baseUrl: string): string {
  return `SSH key of user ${userId} at ${baseUrl}`;
}

/** @throws AppError `validation_failed` unless the signature is by the key, over `text` */
export async function checkKeyProof(key: PublicKey, signature: string, text: string): Promise<void> {
  // `echo` adds the line end, `printf` does not.
  for (const message of [text, `${text}\n`])
    if (await verifySshSignature(signature, { key: key.blob, namespace, message })) return;
  const message = `must be by this key, over the text "${text}", in the namespace "${namespace}"`;
  throw new AppError('validation_failed', `The signature ${message}.`, { details: [{ path: 'signature', message }] });
}

/** The answer when another account has the key: it may be moved by who has its private half. */
export function keyOfAnotherAccount(text: string, cause: unknown): AppError {
  const message =
    'This key is registered with another account. `paas keys:add` moves it to yours if you have its private key: it sends as ' +
    `\`signature\` what \`printf '%s' '${text}' | ssh-keygen -Y sign -n ${namespace} -f <private key>\` prints.`;
  return new AppError('conflict', message, { cause, details: [{ path: 'signature', message: text }] });
}
