import { access, constants, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import {
  bubblewrap,
  type Command,
  type ConfinedCommand,
  mountedCommand,
  otherUserCommand,
  plainCommand,
} from './postgres-commands.ts';

/**
 * PostgreSQL refuses to run as root. These need no account and belong to nobody else. The server of the apps' databases has another one than
 * the platform's: whoever breaks out of the one does not reach the files and the socket of the other.
 */
const serverUids = { platform: 60_910, apps: 60_911 } as const;
/** The program initdb wants a user with a name. */
const nobodyUid = 65_534;

/** Whose data is in a cluster. */
export type ClusterUse = keyof typeof serverUids;

/** How this process, in this place, runs PostgreSQL's programs. */
export interface PostgresRunner {
  /** Owner of the cluster's files; undefined: this process's own user. */
  readonly serverUid: number | undefined;
  /** Owner of the files while initdb runs. */
  readonly initdbUid: number | undefined;
  command(program: 'initdb' | 'postgres', argumentsIn: ConfinedCommand['arguments']): Command;
}

/**
 * @param directory absolute; the cluster lies in it
 * @throws Error, one line for the operator, when root has no way to run the programs as another user
 */
export async function choosePostgresRunner(nativeDir: string, directory: string, use: ClusterUse): Promise<PostgresRunner> {
  const serverUid = serverUids[use];
  const paths = { nativeDir, directory };
  if (process.getuid?.() !== 0) {
    return {
      serverUid: undefined,
      initdbUid: undefined,
      command: (program, argumentsIn) => plainCommand({ ...paths, program, arguments: argumentsIn }),
    };
  }
  const closed = (await findClosedDirectory(nativeDir)) ?? (await findClosedDirectory(directory));
  if (closed !== undefined && !(await isExecutable(bubblewrap))) {
    throw new Error(
      `PostgreSQL does not run as root, and another user cannot enter ${closed}. Run: apt-get install -y bubblewrap`,
    );
  }
  const asUser = closed === undefined ? otherUserCommand : mountedCommand;
  return {
    serverUid,
    initdbUid: nobodyUid,
    command: (program, argumentsIn) =>
      asUser({ ...paths, program, arguments: argumentsIn, uid: program === 'initdb' ? nobodyUid : serverUid }),
  };
}

/** The first directory from `path` up that other users cannot enter. */
async function findClosedDirectory(path: string): Promise<string | undefined> {
  for (let current = path; ; current = dirname(current)) {
    const { mode } = await stat(current);
    if ((mode & 0o001) === 0) return current;
    if (current === dirname(current)) return undefined;
  }
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
