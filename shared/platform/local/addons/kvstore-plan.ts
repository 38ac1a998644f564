/** The pure half of a key-value server: its configuration file and its sandbox. */
import { createHash } from 'node:crypto';
import type { SandboxSpec } from '#shared/platform/local/sandbox/sandbox.ts';

export interface KvstorePlan {
  port: number;
  /** Of the whole server. */
  memoryBytes: number;
  connections: number;
  /** The app's password, as `hashPassword` gives it. */
  passwordHash: string;
  /** The platform's own way in, as `hashPassword` gives it. */
  adminHash: string;
}

/** Who the platform is at the server; the app is `default`, which clients mean when they name nobody. */
export const adminUser = 'paas';

/** What is left of a server's memory is for its clients' buffers and for writing its data down. */
const dataShare = 0.75;

const mebibyte = 1024 * 1024;
const configTarget = '/kvstore/server.conf';
const dataTarget = '/kvstore/data';
/** The socket that the platform administers the server on, in its data directory. */
export const adminSocketName = 'admin.sock';
export const dumpName = 'dump.rdb';

/** Hexadecimal SHA-256, as the server's access list takes it: no password stands in a file. */
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
    // Renaming itself would wipe the environment by which it is found after a crash of the platform.
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

/** By which a server is found that was started right before the platform died. */
export const addonVariable = 'PAAS_ADDON';

export function kvstoreSandbox({ id, uid, program, configFile, dataDir, memoryBytes, network }: KvstoreSandbox): SandboxSpec {
  return {
    id,
    uid,
    argv: [program, configTarget],
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC', [addonVariable]: id },
    // Its data directory is closed to whoever sets the sandbox up; the server goes there itself.
    cwd: '/tmp',
    mounts: [
      { source: configFile, target: configTarget },
      { source: dataDir, target: dataTarget, writable: true },
      // What is installed under /usr is there already.
      ...(program.startsWith('/usr/') ? [] : [{ source: program, target: program }]),
    ],
    tmp: { bytes: mebibyte },
    limits: { memoryBytes, processes: 32, fileBytes: 4 * memoryBytes },
    network,
    dieWithParent: false,
  };
}
