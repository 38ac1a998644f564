import { AppError } from '#shared/errors.ts';

const local = /^[^\s@<>()[\]",;:\\\p{Cc}]{1,64}$/u;
const domain = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;

/**
 * Trims an email address and checks its form. Whether it can receive mail is not checked.
 * @throws AppError validation_failed
 */
export function checkEmail(typed: string): string {
  const email = typed.trim();
  const at = email.lastIndexOf('@');
  const host = email.slice(at + 1);
  if (at > 0 && email.length <= 254 && local.test(email.slice(0, at)) && (domain.test(host) || host === 'localhost'))
    return email;
  throw invalid('email', 'must be an email address such as ada@example.com');
}

/** Any characters are allowed. @throws AppError validation_failed unless the password has 8 to 200 characters */
export function checkPassword(password: string): void {
  const length = [...password].length;
  if (length < 8 || length > 200) throw invalid('password', 'must have 8 to 200 characters');
}

/** The form by which email addresses are compared: trimmed and in lower case. */
export function emailKey(email: string): string {
  return email.trim().toLowerCase();
}

function invalid(path: string, message: string): AppError {
  return new AppError('validation_failed', `The ${path} ${message}.`, { details: [{ path, message }] });
}
