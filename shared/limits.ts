/** Every limit of SPEC.md §8 and of the threat model, in one place. Units are in the names. */

const mebibyte = 1024 * 1024;

export const limits = {
  http: {
    bodyBytes: mebibyte,
    /** What GitHub sends at most. */
    webhookBytes: 25 * mebibyte,
    authenticatedPerMinute: 600,
    unauthenticatedPerMinute: 30,
  },
  ssh: {
    loginGraceSeconds: 30,
    authAttempts: 6,
    unauthenticatedSoftCap: 10,
    unauthenticatedDropRatio: 0.3,
    unauthenticatedHardCap: 100,
    keepaliveSeconds: 15,
    keepaliveMisses: 4,
    connections: 2000,
    sessionsPerConnection: 10,
    /** Nothing sent though it was the client's turn, or an authenticated connection without a command. */
    idleSeconds: 10 * 60,
    /** Of a source that fails to log in; they fade by one a second. A failed login counts 5. */
    slowFromPoints: 15,
    refuseFromPoints: 60,
  },
  push: {
    packBytes: 256 * mebibyte,
    objectBytes: 100 * mebibyte,
    objects: 2_000_000,
    /** Changed by one push. */
    refs: 10_000,
    /** Of a repository. */
    repositoryRefs: 50_000,
    seconds: 15 * 60,
  },
  submodules: {
    count: 50,
    /** Submodules of submodules. */
    depth: 4,
    /** Of all their packs. */
    bytes: 512 * mebibyte,
    /** For all of them. */
    seconds: 10 * 60,
  },
  /** The files of one commit: a few hundred bytes of pack can name more of them than any machine holds. */
  tree: {
    /** Files and directories. */
    entries: 200_000,
    pathCharacters: 4096,
    /** Of all paths together. */
    characters: 64 * mebibyte,
  },
  archive: {
    packedBytes: 256 * mebibyte,
    /** Unpacked, with all that a tar has around its files. */
    bytes: 600 * mebibyte,
    entries: 100_000,
    pathBytes: 2048,
    depth: 100,
  },
  packs: {
    /** Of a repository, from which on the small ones among them are joined. */
    joinFrom: 32,
    /** Of one that others are joined into; larger repositories keep what is unreachable. */
    objects: 2_000_000,
    /** Of grace for what nothing reaches: two weeks, as git has it. */
    unreachableSeconds: 14 * 24 * 60 * 60,
    /** How long after a push what it made unreachable is looked for. */
    collectSeconds: 24 * 60 * 60,
  },
  build: {
    seconds: 15 * 60,
    slugBytes: 500 * mebibyte,
    cacheBytes: 5 * 1024 * mebibyte,
    memoryBytes: 2048 * mebibyte,
    processes: 1024,
    logBytes: 10 * mebibyte,
    logLineBytes: 8 * 1024,
  },
  app: {
    memoryBytes: 512 * mebibyte,
    processes: 256,
    bootSeconds: 60,
    stopSeconds: 10,
    drainSeconds: 30,
    instancesPerType: 20,
    domains: 50,
    configBytes: 64 * 1024,
    restoreDays: 30,
  },
} as const;
