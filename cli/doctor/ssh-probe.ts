/** The SSH server of a push URL. */
export interface SshAddress {
  readonly user: string;
  readonly host: string;
  readonly port: string;
}

/** Undefined for other URLs, and if ssh could take a part of it for an option. */
export function parseSshAddress(pushUrl: string): SshAddress | undefined {
  const match = /^ssh:\/\/([a-z][a-z0-9_-]*)@([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?\//.exec(pushUrl);
  if (match?.[1] === undefined || match[2] === undefined) return undefined;
  return { user: match[1], host: match[2].replace(/^\[|\]$/g, ''), port: match[3] ?? '22' };
}

/** Options that make ssh log in without asking questions and without accepting a new host key. */
const probeOptions = '-o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=5';

/**
 * The environment in which git tries the login as it would for a push.
 * @param env of the user
 * @param configured `core.sshCommand` of git; undefined without one
 */
export function probeEnvironment(env: Environment, configured: string | undefined): Environment {
  const quiet = { ...env, GIT_TERMINAL_PROMPT: '0' };
  // GIT_SSH is a program, not a command line: it gets no options of ours.
  if (env['GIT_SSH_COMMAND'] === undefined && configured === undefined && env['GIT_SSH'] !== undefined) return quiet;
  return { ...quiet, GIT_SSH_COMMAND: `${sshCommandOf(env, configured)} ${probeOptions}` };
}

type Environment = Readonly<Record<string, string | undefined>>;

/** What git runs for ssh, as it chooses it. */
export function sshCommandOf(env: Environment, configured: string | undefined): string {
  return env['GIT_SSH_COMMAND'] ?? configured ?? env['GIT_SSH'] ?? 'ssh';
}

/** The result of `git ls-remote`, by its exit code and error output. @param ssh as `sshCommandOf` returns it */
export function sshVerdict(
  { user, host, port }: SshAddress,
  { code, stderr }: { code: number | null; stderr: string },
  ssh: string,
): { ok: boolean; detail: string; fix?: string } {
  const address = `${host}:${port}`;
  if (code === 0) return { ok: true, detail: `login at ${address} works` };
  const connect = `${ssh} -T -p ${port} ${user}@${host}`;
  if (/REMOTE HOST IDENTIFICATION HAS CHANGED/.test(stderr)) {
    return {
      ok: false,
      detail: `the host key of ${address} has changed`,
      fix: `if the platform was reinstalled: ssh-keygen -R '[${host}]:${port}'`,
    };
  }
  if (/Host key verification failed/.test(stderr)) {
    return { ok: false, detail: `ssh does not know the host key of ${address}`, fix: `${connect} shows the key and asks` };
  }
  if (/Permission denied/.test(stderr))
    return {
      ok: false,
      detail: `${address} refuses the keys that ssh can use without a question`,
      fix: 'paas keys:add, or ssh-add if your key has a passphrase',
    };
  if (/Connection refused|Could not resolve|timed out|No route|Connection closed|Connection reset/.test(stderr)) {
    return { ok: false, detail: `ssh cannot reach ${address}`, fix: `see the output of: ${connect}` };
  }
  const reason = stderr.trim().split('\n')[0] ?? '';
  return { ok: false, detail: `git cannot read the app: ${reason}`, fix: `see the output of: ${connect}` };
}
