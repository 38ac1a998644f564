/** Where ssh knocks for a push. */
export interface SshDoor {
  readonly user: string;
  readonly host: string;
  readonly port: string;
}

/** Undefined when ssh could take it for something else than a host. */
export function readSshDoor(pushUrl: string): SshDoor | undefined {
  const match = /^ssh:\/\/([a-z][a-z0-9_-]*)@([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?\//.exec(pushUrl);
  if (match?.[1] === undefined || match[2] === undefined) return undefined;
  return { user: match[1], host: match[2].replace(/^\[|\]$/g, ''), port: match[3] ?? '22' };
}

/** Arguments for ssh to log in without a question and without trusting anybody new. */
export function sshProbe({ user, host, port }: SshDoor): readonly string[] {
  const options = ['BatchMode=yes', 'StrictHostKeyChecking=yes', 'ConnectTimeout=5'];
  return ['-T', ...options.flatMap((option) => ['-o', option]), '-p', port, '--', `${user}@${host}`];
}

/** What ssh's complaints mean. Whoever gets as far as being told that there is no shell is let in. */
export function sshVerdict({ user, host, port }: SshDoor, stderr: string): { ok: boolean; detail: string; mend?: string } {
  const address = `${host}:${port}`;
  const connect = `ssh -T -p ${port} ${user}@${host}`;
  if (/REMOTE HOST IDENTIFICATION HAS CHANGED/.test(stderr)) {
    return {
      ok: false,
      detail: `the host key of ${address} is not the one ssh remembers`,
      mend: `if the platform was set up anew: ssh-keygen -R '[${host}]:${port}'`,
    };
  }
  if (/Host key verification failed/.test(stderr)) {
    return { ok: false, detail: `ssh does not know the host key of ${address} yet`, mend: `${connect} shows it and asks` };
  }
  if (/Permission denied/.test(stderr))
    return {
      ok: false,
      detail: `${address} takes none of the keys that ssh can use without asking`,
      mend: 'paas keys:add, or ssh-add when your key has a passphrase',
    };
  if (/Connection refused|Could not resolve|timed out|No route|Connection closed|Connection reset/.test(stderr)) {
    return { ok: false, detail: `ssh cannot reach ${address}`, mend: `look at what this says: ${connect}` };
  }
  return { ok: true, detail: `${address} knows you` };
}
