/** Superuser of the embedded cluster, and the database it connects to. */
export const postgresUser = 'paas';

/** Settings of `postgresql.conf`, by name. */
export type PostgresSettings = Readonly<Record<string, string | number>>;

/** For a small machine that runs other things too: about 60 MB, four background processes, no logical replication. */
const machineSettings: PostgresSettings = {
  shared_buffers: '64MB',
  max_connections: 100,
  work_mem: '8MB',
  maintenance_work_mem: '64MB',
  max_wal_size: '512MB',
  huge_pages: 'off',
  jit: 'off',
  io_method: 'sync',
  max_logical_replication_workers: 0,
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_line_prefix: '%m [%p] ',
  // A failed statement's detail quotes the row's values; they may be secrets.
  log_error_verbosity: 'terse',
};

/**
 * @param cluster where to create it; must not exist
 * @param passwordFile the superuser's password
 */
export function initdbArguments(cluster: string, passwordFile: string, sync: boolean): readonly string[] {
  return [
    '--pgdata',
    cluster,
    '--username',
    postgresUser,
    '--pwfile',
    passwordFile,
    '--auth',
    'scram-sha-256',
    '--encoding',
    'UTF8',
    '--locale',
    'C',
    '--locale-provider',
    'builtin',
    '--builtin-locale',
    'C.UTF-8',
    '--no-instructions',
    ...(sync ? [] : ['--no-sync']),
  ];
}

/** Directory of the unix socket, beside the cluster. */
export const socketDirectory = 'socket';

/** Where a server listens. */
export interface PostgresListening {
  /** Part of the socket's name: `.s.PGSQL.<port>`. */
  readonly port: number;
  /** Whether it listens on this port of 127.0.0.1, too. */
  readonly tcp: boolean;
}

/** The server in the foreground. */
export function postgresArguments(
  cluster: string,
  { port, tcp }: PostgresListening,
  settings: PostgresSettings = {},
): readonly string[] {
  const all = {
    ...machineSettings,
    ...settings,
    listen_addresses: tcp ? '127.0.0.1' : '',
    port,
    // Relative to the cluster: an absolute path may be longer than an address of a socket.
    unix_socket_directories: `../${socketDirectory}`,
    unix_socket_permissions: '0700',
  };
  return ['-D', cluster, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

export const bubblewrap = '/usr/bin/bwrap';

export interface Command {
  readonly file: string;
  readonly arguments: readonly string[];
  readonly uid?: number;
  readonly gid?: number;
  /** In addition to what every program of PostgreSQL gets. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A server whose processes inherit a limit on their memory. */
export function limitedCommand(command: Command, sessions: { memoryBytes: number; oomScoreAdjustment: number }): Command {
  return {
    ...command,
    file: '/usr/bin/prlimit',
    arguments: [`--data=${sessions.memoryBytes}`, '--', command.file, ...command.arguments],
    // The postmaster keeps the adjustment that it has inherited, and gives this one to each of its children.
    env: { PG_OOM_ADJUST_FILE: '/proc/self/oom_score_adj', PG_OOM_ADJUST_VALUE: String(sessions.oomScoreAdjustment) },
  };
}

/** Paths as the confined process sees them: short, and without a parent directory it could not enter. */
const inside = { native: '/native', directory: '/postgres' };

export interface ConfinedCommand {
  /** Installation with `bin/`, `lib/` and `share/`. */
  nativeDir: string;
  /** The one directory the process may write to. */
  directory: string;
  uid: number;
  program: 'initdb' | 'postgres';
  /** Arguments, given how the process sees `directory`. */
  arguments: (directory: string) => readonly string[];
}

/** As the caller's own user. */
export function plainCommand(command: Omit<ConfinedCommand, 'uid'>): Command {
  return { file: `${command.nativeDir}/bin/${command.program}`, arguments: command.arguments(command.directory) };
}

/** Run by root, as another uid, where that uid can enter every directory on the way. */
export function otherUserCommand(command: ConfinedCommand): Command {
  return { ...plainCommand(command), uid: command.uid, gid: command.uid };
}

/**
 * Run by root, as another uid, where that uid could not enter a parent directory (/root, `mktemp -d`): bubblewrap mounts
 * the two directories on paths of their own. The process stays in the machine's pid, network and IPC namespaces, so that
 * its postmaster.pid means something outside and its interlock holds.
 */
export function mountedCommand(command: ConfinedCommand): Command {
  const readOnly = ['/usr', '/bin', '/lib', '/lib64', '/etc/passwd', '/etc/ld.so.cache'];
  return {
    file: bubblewrap,
    arguments: [
      ...['--perms', '0755', '--dir', '/etc'],
      ...readOnly.flatMap((path) => ['--ro-bind-try', path, path]),
      ...['--ro-bind', command.nativeDir, inside.native],
      ...['--bind', command.directory, inside.directory],
      ...['--dev', '/dev', '--bind', '/dev/shm', '/dev/shm', '--proc', '/proc', '--perms', '1777', '--tmpfs', '/tmp'],
      ...['--cap-drop', 'ALL', '--cap-add', 'CAP_SETUID', '--cap-add', 'CAP_SETGID', '--chdir', '/', '--'],
      ...['/usr/bin/setpriv', '--reuid', String(command.uid), '--regid', String(command.uid), '--clear-groups'],
      ...['--inh-caps=-all', '--', `${inside.native}/bin/${command.program}`],
      ...command.arguments(inside.directory),
    ],
  };
}
