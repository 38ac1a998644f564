import { AppError } from '#shared/errors.ts';

const local = /^[^\s@<>()[\]",;:\\\p{Cc}]{1,64}$/u;
const domain = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;

/** Trims, and throws `validation_failed` for what cannot be an email address. Whether it can be reached is not known. */
export function checkEmail(typed: string): string {
  const email = typed.trim();
  const at = email.lastIndexOf('@');
  const host = email.slice(at + 1);
  if (at > 0 && email.length <= 254 && local.test(email.slice(0, at)) && (domain.test(host) || host === 'localhost'))
    return email;
  throw invalid('email', 'must be an email address, as ada@example.com');
}

/** Throws `validation_failed` unless it has 8 to 200 characters; any characters will do. */
export function checkPassword(password: string): void {
  const length = [...password].length;
  if (length < 8 || length > 200) throw invalid('password', 'must have 8 to 200 characters');
}

/** One spelling per mailbox: addresses are compared without case. */
export function emailKey(email: string): string {
  return email.trim().toLowerCase();
}

function invalid(path: string, message: string): AppError {
  return new AppError('validation_failed', `The ${path} ${message}.`, { details: [{ path, message }] });
}
