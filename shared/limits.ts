/** All limits of SPEC.md §8 and of the threat model. Units are in the names. */

import { secondsPerDay, secondsPerMinute } from '#shared/durations.ts';

const mebibyte = 1024 * 1024;

/** Bounds that hold everywhere; those that operators change are settings. Bytes, seconds and counts by name. */
export const limits = {
  http: {
    bodyBytes: mebibyte,
    /** Of requests without a token. */
    publicBodyBytes: 64 * 1024,
    /** A client may take this long to send a body, except for a push over HTTP. */
    bodySeconds: 5 * secondsPerMinute,
    /** The largest delivery that GitHub sends. */
    webhookBytes: 25 * mebibyte,
    /** Deliveries in memory at once: four of the largest from known git hosts, and two from others. */
    webhooksInFlight: { all: 150 * mebibyte, ofSource: 50 * mebibyte, unproven: 50 * mebibyte },
    /** How long the body of a delivery may take to arrive. */
    webhookSeconds: 60,
    /** Event streams that are open at once, in one process. */
    eventStreams: { ofUser: 20, all: 1000 },
    /** Of one access token or API token. */
    authenticatedPerMinute: 600,
    /** Of all tokens of a user together. */
    userPerMinute: 1800,
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
    /** How long a client may send nothing when it has to, or stay connected without a command. */
    idleSeconds: 10 * secondsPerMinute,
    /** Penalty points of a source with failed logins: 5 per failure, minus one per second. */
    slowFromPoints: 15,
    refuseFromPoints: 60,
  },
  push: {
    packBytes: 256 * mebibyte,
    objectBytes: 100 * mebibyte,
    objects: 2_000_000,
    /** Refs changed by one push. */
    refs: 10_000,
    /** Refs of a repository. */
    repositoryRefs: 50_000,
    seconds: 15 * secondsPerMinute,
  },
  submodules: {
    count: 50,
    /** Nesting of submodules. */
    depth: 4,
    /** All their packs together. */
    bytes: 512 * mebibyte,
    /** Time for all of them together. */
    seconds: 10 * secondsPerMinute,
  },
  /** Of one build and of each of its submodules, by Git LFS. */
  largeFiles: {
    count: 5000,
    /** All of them together. */
    bytes: 1024 * mebibyte,
  },
  /** What is shown of a repository. */
  browsing: {
    /** Of a commit or a directory. */
    objectBytes: 4 * mebibyte,
    fileBytes: mebibyte,
    /** Of a comparison. */
    commits: 250,
    files: 1000,
    trees: 2000,
  },
  /** The files of one commit. A few hundred bytes of pack can name more files than any machine can hold. */
  tree: {
    /** Files and directories. */
    entries: 200_000,
    pathCharacters: 4096,
    /** Length of all paths together. */
    characters: 64 * mebibyte,
  },
  archive: {
    packedBytes: 256 * mebibyte,
    /** Size of the unpacked tar, including its headers. */
    bytes: 600 * mebibyte,
    entries: 100_000,
    pathBytes: 2048,
    depth: 100,
  },
  packs: {
    /** From this number of packs, the small ones of a repository are joined. */
    joinFrom: 32,
    /** Largest number of objects in a joined pack; larger repositories keep unreachable objects. */
    objects: 2_000_000,
    /** How long unreachable objects are kept: two weeks, git's default. */
    unreachableSeconds: 14 * secondsPerDay,
    /** Delay between a push and the garbage collection that it causes. */
    collectSeconds: secondsPerDay,
  },
  build: {
    seconds: 15 * secondsPerMinute,
    slugBytes: 500 * mebibyte,
    cacheBytes: 5 * 1024 * mebibyte,
    /** The app's files, the home directory and /tmp of a build together. */
    diskBytes: 6 * 1024 * mebibyte,
    memoryBytes: 2048 * mebibyte,
    processes: 1024,
    logBytes: 10 * mebibyte,
    logLineBytes: 8 * 1024,
  },
  addon: {
    /** Of a database; from then on it is read-only. */
    databaseBytes: 1024 * mebibyte,
  },
  disk: {
    /** What must stay free of the disk of the data directory, unless the operator says otherwise: the smaller of both. */
    reserveBytes: 2048 * mebibyte,
    reserveShare: 0.05,
    /** Builds are refused, and warned of, from these multiples of the reserve, or shares of all files, that are free. */
    refuse: { reserves: 2, filesShare: 0.02 },
    warn: { reserves: 4, filesShare: 0.05 },
    checkSeconds: 10,
  },
  app: {
    memoryBytes: 512 * mebibyte,
    processes: 256,
    bootSeconds: 60,
    /** What an app may set. */
    bootTimeoutSeconds: { most: 600 },
    healthTimeoutSeconds: { usual: 5, most: 60 },
    healthPathCharacters: 200,
    directoryCharacters: 200,
    stopSeconds: 10,
    drainSeconds: 30,
    instancesPerType: 20,
    domains: 50,
    /** Active previews of one app. */
    previews: 10,
    configBytes: 64 * 1024,
    restoreDays: 30,
    /** Files of an app's log; the oldest lines are deleted first. */
    logs: { segmentBytes: mebibyte, retainedBytes: 50 * mebibyte },
    /** Files of an instance's stdout, and of its stderr, before they are collected into the log. */
    output: { segmentBytes: mebibyte, retainedBytes: 8 * mebibyte },
  },
} as const;
