import { expect, it } from 'vitest';
import { readSshDoor, sshProbe, sshVerdict } from '#cli/git/ssh-probe.ts';

it('asks ssh for a login without questions and without trusting a new host', () => {
  const door = readSshDoor('ssh://git@localhost:2222/hello.git');
  expect(door).toEqual({ user: 'git', host: 'localhost', port: '2222' });
  expect(door === undefined ? [] : sshProbe(door)).toEqual([
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
])('%s is no door', (url) => {
  expect(readSshDoor(url)).toBeUndefined();
});

it.each([
  ['git@localhost: Permission denied (publickey).', false, 'paas keys:add, or ssh-add when your key has a passphrase'],
  [
    'No ED25519 host key is known for [localhost]:2222 and you have requested strict checking.\nHost key verification failed.',
    false,
    'ssh -T -p 2222 git@localhost shows it and asks',
  ],
  [
    '@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.',
    false,
    "if the platform was set up anew: ssh-keygen -R '[localhost]:2222'",
  ],
  ['ssh: connect to host localhost port 2222: Connection refused', false, 'look at what this says: ssh -T -p 2222 git@localhost'],
  ['Hello ada@example.com. There is no shell here.', true, undefined],
])('%s means %s', (stderr, ok, mend) => {
  const verdict = sshVerdict({ user: 'git', host: 'localhost', port: '2222' }, stderr);
  expect({ ok: verdict.ok, mend: verdict.mend }).toEqual({ ok, mend });
});
