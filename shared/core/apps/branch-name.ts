import { AppError } from '#shared/errors.ts';

/** The branch that an app is deployed from unless another is chosen. */
export const defaultBranch = 'main';

const forbidden = [
  /^-/, // would be read as an option by any program it is handed to
  /^\/|\/$|\/\//,
  /\.\.|@\{|^@$|\\/,
  /(^|\/)\./,
  /\.lock(\/|$)|\.$/,
  /[\x00-\x20\x7f~^:?*[]/,
];

/** As `git check-ref-format --branch`; throws `validation_failed`. */
export function checkBranchName(branch: string): void {
  const ok =
    branch.length > 0 &&
    branch.length <= 200 &&
    !branch.startsWith('refs/') &&
    !forbidden.some((pattern) => pattern.test(branch));
  if (ok) return;
  throw new AppError('validation_failed', 'That is not a branch name that git accepts.', {
    details: [{ path: 'branch', message: 'must be a branch name as main or feature/login' }],
  });
}
