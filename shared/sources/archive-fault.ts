import { AppError } from '#shared/errors.ts';

/** A fault of a source archive, for its owner. @param what the predicate of "The source archive …", without a full stop */
export function archiveFault(what: string, cause?: unknown): AppError {
  return new AppError('validation_failed', `The source archive ${what}.`, { cause });
}

/** Quotes a file name from an archive so that it is safe to print. */
export function quoteName(name: string): string {
  return JSON.stringify(name.length > 120 ? `${name.slice(0, 120)}…` : name);
}
