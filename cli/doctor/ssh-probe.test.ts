import { expect, it } from 'vitest';
import { parseSshAddress, probeEnvironment, sshVerdict } from '#cli/doctor/ssh-probe.ts';

const options = '-o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=5';

it.each([
  [{}, undefined, `ssh ${options}`],
  [{ GIT_SSH_COMMAND: 'ssh -i key' }, 'ssh -i other', `ssh -i key ${options}`],
  [{ GIT_SSH: '/opt/plink' }, 'ssh -i other', `ssh -i other ${options}`],
  [{ GIT_SSH: '/opt/plink' }, undefined, undefined],
])(
  'the login is tried with the ssh that git uses for %o and core.sshCommand %s, without questions',
  (env, configured, command) => {
    expect(probeEnvironment({ ...env, HOME: '/home/ada' }, configured)).toEqual({
      ...env,
      HOME: '/home/ada',
      GIT_TERMINAL_PROMPT: '0',
      ...(command === undefined ? {} : { GIT_SSH_COMMAND: command }),
    });
  },
);

it('an address has a user, a host and a port', () => {
  expect(parseSshAddress('ssh://git@localhost:2222/hello.git')).toEqual({ user: 'git', host: 'localhost', port: '2222' });
});

it.each([
  'ssh://-oProxyCommand=x@host/a.git',
  'ssh://git@-oProxyCommand=x/a.git',
  'https://git@host/a.git',
  'ssh://git@ho st/a.git',
])('%s is no address for ssh', (url) => {
  expect(parseSshAddress(url)).toBeUndefined();
});

it.each([
  ['git@localhost: Permission denied (publickey).', false, 'paas keys:add, or ssh-add if your key has a passphrase'],
  [
    'No ED25519 host key is known for [localhost]:2222 and you have requested strict checking.\nHost key verification failed.',
    false,
    'ssh -T -p 2222 git@localhost shows the key and asks',
  ],
  [
    '@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.',
    false,
    "if the platform was reinstalled: ssh-keygen -R '[localhost]:2222'",
  ],
  ['ssh: connect to host localhost port 2222: Connection refused', false, 'see the output of: ssh -T -p 2222 git@localhost'],
  [
    'remote: There is no app hello.\nfatal: Could not read from remote repository.',
    false,
    'see the output of: ssh -T -p 2222 git@localhost',
  ],
])('%s means %s', (stderr, ok, fix) => {
  const verdict = sshVerdict({ user: 'git', host: 'localhost', port: '2222' }, { code: 128, stderr }, 'ssh');
  expect({ ok: verdict.ok, fix: verdict.fix }).toEqual({ ok, fix });
});

it('git that reads the app means that the login works', () => {
  expect(sshVerdict({ user: 'git', host: 'localhost', port: '2222' }, { code: 0, stderr: 'Warning: …' }, 'ssh')).toEqual({
    ok: true,
    detail: 'login at localhost:2222 works',
  });
});
