/** Cycles that are being removed. Each list may only shrink: a name that is in no cycle any more fails the check. */
export const knownFolderCycles: readonly (readonly string[])[] = [
  ['shared', 'shared/database', 'shared/git', 'shared/git/objects', 'shared/git/refs', 'shared/platform'],
  ['shared/platform/local/logs', 'shared/platform/local/sandbox', 'shared/platform/local/workloads'],
];

export const knownFileCycles: readonly (readonly string[])[] = [];
