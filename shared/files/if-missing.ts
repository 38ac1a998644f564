/** What `.catch` is given where no file is an answer too: `value` for ENOENT. Any other error is thrown on. */
export function ifMissing<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (isMissing(error)) return value;
    throw error;
  };
}

/** Whether an error says that a file or directory does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
