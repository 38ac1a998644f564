/** Cycles that are being removed. Each list may only shrink: a name that is in no cycle any more fails the check. */
export const knownFolderCycles: readonly (readonly string[])[] = [];

export const knownFileCycles: readonly (readonly string[])[] = [];
