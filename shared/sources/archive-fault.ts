import { AppError } from '#shared/errors.ts';

/** @param what goes on from "The source archive", without a full stop */
export function archiveFault(what: string, cause?: unknown): AppError {
  return new AppError('validation_failed', `The source archive ${what}.`, { cause });
}

/** A name out of an archive, fit to be printed whatever is in it. */
export function quoteName(name: string): string {
  return JSON.stringify(name.length > 120 ? `${name.slice(0, 120)}…` : name);
}
