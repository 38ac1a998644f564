import { createHash } from 'node:crypto';
import type { SandboxSpec } from '#shared/platform/local/sandbox/sandbox.ts';

/** What the configuration of a key-value server depends on. */
export interface KvstorePlan {
  port: number;
  /** Of the whole server. */
  memoryBytes: number;
  connections: number;
  /** Of the app's password, by `hashPassword`. */
  passwordHash: string;
  /** Of the platform's password, by `hashPassword`. */
  adminHash: string;
}

/** The platform's user at the server. The app's is `default`: clients use it when they name none. */
export const adminUser = 'paas';

/** The rest of a server's memory is for the buffers of its clients and for saving its data. */
const dataShare = 0.75;

const mebibyte = 1024 * 1024;
const configTarget = '/kvstore/server.conf';
const dataTarget = '/kvstore/data';
/** The socket that the platform administers the server on, in its data directory. */
export const adminSocketName = 'admin.sock';
/** The server's data while it is stopped. */
export const dumpName = 'dump.rdb';

/** Hexadecimal SHA-256, as the server's access list takes it, so that no file contains a password. */
export function hashPassword(password: string): string {
  return createHash('sha256').update(password).digest('hex');
}

/**
 * The app may do everything but administer: `config set` could open the server to others. Data is written when the server is
 * asked to end, and at no other time. The platform connects over a socket that only it reaches: whoever takes the server's port
 * while it is down learns no password.
 */
export function kvstoreConfig(plan: KvstorePlan): string {
  return [
    'bind 127.0.0.1',
    `port ${plan.port}`,
    `unixsocket ${dataTarget}/${adminSocketName}`,
    'unixsocketperm 700',
    'protected-mode yes',
    'daemonize no',
    // A change of the title would overwrite the environment, by which it is found after a crash of the platform.
    'set-proc-title no',
    'loglevel warning',
    `dir ${dataTarget}`,
    `dbfilename ${dumpName}`,
    'save ""',
    'appendonly no',
    'shutdown-on-sigterm save',
    `maxmemory ${Math.floor(plan.memoryBytes * dataShare)}`,
    'maxmemory-policy noeviction',
    `maxclients ${plan.connections}`,
    'tcp-keepalive 60',
    `user default on #${plan.passwordHash} ~* &* +@all -@admin +client|list +client|kill +slowlog|get`,
    `user ${adminUser} on #${plan.adminHash} ~* &* +@all`,
    '',
  ].join('\n');
}

export interface KvstoreSandbox {
  id: string;
  uid: number;
  /** Absolute path of the server. */
  program: string;
  configFile: string;
  dataDir: string;
  memoryBytes: number;
  /** Name of the app's network namespace; undefined: the host's network. */
  network: string | undefined;
}

/** Environment variable by which a server is found that was started right before the platform died. */
export const addonVariable = 'PAAS_ADDON';

/** The sandbox of a server, which survives the platform's process. */
export function kvstoreSandbox({ id, uid, program, configFile, dataDir, memoryBytes, network }: KvstoreSandbox): SandboxSpec {
  return {
    id,
    uid,
    argv: [program, configTarget],
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC', [addonVariable]: id },
    // The user that sets the sandbox up may not enter the data directory; the server enters it itself.
    cwd: '/tmp',
    mounts: [
      { source: configFile, target: configTarget },
      { source: dataDir, target: dataTarget, writable: true },
      // /usr is in every sandbox.
      ...(program.startsWith('/usr/') ? [] : [{ source: program, target: program }]),
    ],
    tmp: { bytes: mebibyte },
    limits: { memoryBytes, processes: 32, fileBytes: 4 * memoryBytes },
    network,
    dieWithParent: false,
  };
}
