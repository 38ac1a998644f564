/**
 * What receives and reads packs. `native`: our own code in worker threads, with zlib of Node. `isomorphic-git`: in JavaScript, in the
 * thread that calls, for runtimes that have neither.
 */
export const gitIndexers = ['native', 'isomorphic-git'] as const;
/** One of `gitIndexers`. */
export type GitIndexer = (typeof gitIndexers)[number];
