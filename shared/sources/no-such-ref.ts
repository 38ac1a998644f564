import { AppError } from '#shared/errors.ts';

/** The error for a branch that the source does not have. @param ref for example 'refs/heads/main' */
export function noSuchRef(ref: string): AppError {
  const branch = ref.replace('refs/heads/', '');
  return new AppError(
    'validation_failed',
    `The repository has no branch ${branch}. Push it there, or set another branch: PUT /v1/apps/<app>/git.`,
  );
}
