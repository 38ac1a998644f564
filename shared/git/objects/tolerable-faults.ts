import { GitFault } from '#shared/git/git-fault.ts';

/**
 * Faults that an operator may have let through, by the id that git-fsck(1) gives them: old programs wrote such objects, and
 * whoever reads them comes to no harm. A line or an entry with one is read like any other; what else is wrong with the
 * object is refused as ever. Whatever has been used to attack clients cannot be among them.
 */
export const tolerableFaults = [
  'badDate',
  'badDateOverflow',
  'badEmail',
  'badName',
  'badTimezone',
  'missingEmail',
  'missingNameBeforeEmail',
  'missingSpaceBeforeDate',
  'missingSpaceBeforeEmail',
  'zeroPaddedDate',
  'zeroPaddedFilemode',
] as const;

export type TolerableFault = (typeof tolerableFaults)[number];

/** What large public git hosts let through: history that well-known projects have, and nobody can change. */
export const toleratedByDefault: readonly TolerableFault[] = ['badTimezone', 'missingSpaceBeforeDate', 'zeroPaddedFilemode'];

export type Tolerated = ReadonlySet<TolerableFault>;

export const nothingTolerated: Tolerated = new Set();

export function isTolerable(id: string): id is TolerableFault {
  return tolerableFaults.some((each) => each === id);
}

/**
 * For a fault that can be tolerated and is not. Whoever calls knows the object.
 * @param what is wrong, as 'has a bad author line: no date'
 */
export function tolerableFault(id: TolerableFault, what: string): GitFault {
  return new GitFault(`${what} (${id}). Rewrite the history without it, or ask the operator to tolerate it: PAAS_GIT_TOLERATE`);
}
