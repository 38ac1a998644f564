import { expect, it } from 'vitest';
import { parseSshAddress, sshProbe, sshVerdict } from '#cli/doctor/ssh-probe.ts';

it('ssh logs in without questions and without accepting a new host key', () => {
  const address = parseSshAddress('ssh://git@localhost:2222/hello.git');
  expect(address).toEqual({ user: 'git', host: 'localhost', port: '2222' });
  expect(address === undefined ? [] : sshProbe(address)).toEqual([
    '-T',
    '-o',
    'BatchMode=yes',
    '-o',
    'StrictHostKeyChecking=yes',
    '-o',
    'ConnectTimeout=5',
    '-p',
    '2222',
    '--',
    'git@localhost',
  ]);
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
  ['Hello ada@example.com. There is no shell here.', true, undefined],
])('%s means %s', (stderr, ok, fix) => {
  const verdict = sshVerdict({ user: 'git', host: 'localhost', port: '2222' }, stderr);
  expect({ ok: verdict.ok, fix: verdict.fix }).toEqual({ ok, fix });
});
