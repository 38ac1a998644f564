/** A unique constraint would not hold. */
export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === '23505';
}

/** The row that is referred to is not there, or not any more. */
export function isForeignKeyViolation(error: unknown): boolean {
  return codeOf(error) === '23503';
}

/** PostgreSQL's, of five characters. */
function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}
