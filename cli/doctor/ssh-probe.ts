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

/** Arguments for ssh to log in without asking questions and without accepting a new host key. */
export function sshProbe({ user, host, port }: SshAddress): readonly string[] {
  const options = ['BatchMode=yes', 'StrictHostKeyChecking=yes', 'ConnectTimeout=5'];
  return ['-T', ...options.flatMap((option) => ['-o', option]), '-p', port, '--', `${user}@${host}`];
}

/** The result of a login by the error output of ssh. The platform has no shell: the message that says so means success. */
export function sshVerdict({ user, host, port }: SshAddress, stderr: string): { ok: boolean; detail: string; fix?: string } {
  const address = `${host}:${port}`;
  const connect = `ssh -T -p ${port} ${user}@${host}`;
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
  return { ok: true, detail: `login at ${address} works` };
}
