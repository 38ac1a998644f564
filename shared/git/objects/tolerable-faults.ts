import { GitFault } from '#shared/git/git-fault.ts';

/**
 * Faults that an operator can choose to tolerate, by their id in git-fsck(1). Old programs wrote such objects, and they do no harm
 * to readers. Faults that have been used to attack clients cannot be tolerated. Other faults of the same object are still rejected.
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

/** Id of a fault that can be tolerated. */
export type TolerableFault = (typeof tolerableFaults)[number];

/** What large public git hosts tolerate: well-known projects have it in their history and cannot change that. */
export const toleratedByDefault: readonly TolerableFault[] = ['badTimezone', 'missingSpaceBeforeDate', 'zeroPaddedFilemode'];

/** The faults that are tolerated. */
export type Tolerated = ReadonlySet<TolerableFault>;

/** The strictest choice. */
export const nothingTolerated: Tolerated = new Set();

/** Whether this is the id of a fault that can be tolerated. */
export function isTolerable(id: string): id is TolerableFault {
  return tolerableFaults.some((each) => each === id);
}

/**
 * The error for a fault that can be tolerated and is not.
 * @param what is wrong: 'has a bad author line: no date'
 */
export function tolerableFault(id: TolerableFault, what: string): GitFault {
  return new GitFault(`${what} (${id}). Rewrite the history without it, or ask the operator to tolerate it (PAAS_GIT_TOLERATE)`);
}
