/** Cycles that are being removed. Each list may only shrink: a name that is in no cycle any more fails the check. */
export const knownFolderCycles: readonly (readonly string[])[] = [
<<<<<<< HEAD
  ['shared', 'shared/database', 'shared/git', 'shared/git/objects', 'shared/git/refs', 'shared/platform'],
  ['shared/platform/local/logs', 'shared/platform/local/sandbox', 'shared/platform/local/workloads'],
=======
  [
    'shared/core/addons',
    'shared/core/apps',
    'shared/core/builds',
    'shared/core/releases',
    'shared/core/repositories',
    'shared/core/telemetry',
    'shared/core/webhooks',
  ],
>>>>>>> 8b5690d (Remove the folder cycles of the local driver and of the settings)
];

export const knownFileCycles: readonly (readonly string[])[] = [];
